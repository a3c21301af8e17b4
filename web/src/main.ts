// Entry point of the report: reads the document inside the HTML file, and shows the page for the document's schema.
import "./style.css";
import { abPage } from "./ab.ts";
import { comparePage } from "./compare.ts";
import { h } from "./dom.ts";
import { historyPage } from "./history.ts";
import { loadPage } from "./load.ts";
import { parseDocument, type Page } from "./page.ts";
import { calibrationPage } from "./plan/calibration.ts";
import { forecastPage } from "./plan/forecast.ts";
import { solutionPage } from "./plan/solution.ts";
import { whatIfPage } from "./plan/what-if.ts";
import { redrawOnChange } from "./plot.ts";
import { profilePage } from "./profile.ts";
import { surveyPage } from "./survey-page.ts";
import { sweepPage } from "./sweep.ts";

const PAGES: Record<string, (json: string) => Page> = {
  "brimful.survey/1": surveyPage,
  "brimful.solution/1": (json) => solutionPage(parseDocument(json)),
  "brimful.what-if/1": (json) => whatIfPage(parseDocument(json)),
  "brimful.calibration/1": (json) => calibrationPage(parseDocument(json)),
  "brimful.forecast/1": (json) => forecastPage(parseDocument(json)),
  "brimful.profile/1": (json) => profilePage(parseDocument(json)),
  "brimful.sweep/1": (json) => sweepPage(parseDocument(json)),
  "brimful.comparison/1": (json) => comparePage(parseDocument(json)),
  "brimful.ab/1": (json) => abPage(parseDocument(json)),
  "brimful.history/1": (json) => historyPage(parseDocument(json)),
  "brimful.record/1": (json) => loadPage(parseDocument(json)),
};

const root = document.getElementById("report") as HTMLElement;
try {
  const json = document.querySelector('script[type="application/json"]')?.textContent ?? "";
  const { schema } = parseDocument<{ schema?: unknown }>(json);
  const page = PAGES[String(schema)];
  if (page === undefined) {
    const kind = schema == null ? "no schema" : `the schema ${schema}`;
    throw new Error(`This page shows surveys, loads, sweeps, comparisons, histories, plans and profiles of brimful, but the document in this file has ${kind}.`);
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
  redrawOnChange();
}
