// Starts a headless Chromium, and makes report pages of documents, for the tests and for scripts/screenshots.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

export const MARKER = "<!--__BRIMFUL_DOCUMENT__-->";
export const template = readFileSync(new URL("../dist/report.html", import.meta.url), "utf8");

/** Launches a browser with its profile in this directory, and flags that keep the browser itself off the network. */
export function launch(profile) {
  return chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** The page of a document that is given as JSON text. */
export function report(json) {
  return template.replace(MARKER, () => `<script type="application/json" id="survey">${json.replaceAll("<", "\\u003c")}</script>`);
}
