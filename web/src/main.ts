// The report: one document, drawn by what its schema says it is.
import "./style.css";
import { h } from "./dom.ts";
import { loadPage } from "./load.ts";
import { documentOf, type Page } from "./page.ts";
import { calibrationPage } from "./plan/calibration.ts";
import { forecastPage } from "./plan/forecast.ts";
import { solutionPage } from "./plan/solution.ts";
import { whatIfPage } from "./plan/what-if.ts";
import { follow } from "./plot.ts";
import { profilePage } from "./profile.ts";
import { surveyPage } from "./survey-page.ts";

const PAGES: Record<string, (json: string) => Page> = {
  "brimful.survey/1": surveyPage,
  "brimful.solution/1": (json) => solutionPage(documentOf(json)),
  "brimful.what-if/1": (json) => whatIfPage(documentOf(json)),
  "brimful.calibration/1": (json) => calibrationPage(documentOf(json)),
  "brimful.forecast/1": (json) => forecastPage(documentOf(json)),
  "brimful.profile/1": (json) => profilePage(documentOf(json)),
  "brimful.record/1": (json) => loadPage(documentOf(json)),
};

const root = document.getElementById("report") as HTMLElement;
try {
  const json = document.querySelector('script[type="application/json"]')?.textContent ?? "";
  const { schema } = documentOf<{ schema?: unknown }>(json);
  const page = PAGES[String(schema)];
  if (page === undefined) {
    const found = String(schema ?? "no schema at all");
    throw new Error(`This page shows surveys, loads, plans and profiles of brimful, but this file holds ${found}.`);
  }
  show(page(json));
} catch (problem) {
  const text = problem instanceof Error ? problem.message : String(problem);
  root.replaceChildren(h("h1", {}, "This report cannot be shown"), h("p", { class: "notice", role: "alert" }, text));
}

function show(page: Page): void {
  document.title = page.title;
  root.replaceChildren(...page.content);
  page.start();
  follow();
}
