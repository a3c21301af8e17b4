// The page of `brimful ab` (an A/B test): the main result, each metric with its difference, and the A/A control.
import { figureTable } from "./compare.ts";
import type { AbSide, AbTest } from "./documents/ab.ts";
import { seconds } from "./format.ts";
import { type Page } from "./page.ts";
import { facts, labelFacts, planPage } from "./plan/parts.ts";

export function abPage(tested: AbTest): Page {
  const { design, stopping, run, control } = tested;
  const own = design.control_is_second_process ? "a second process of A" : "A itself";
  return planPage(
    "ab",
    tested.headline,
    [...tested.verdict.reasons.map((reason) => reason.message), ...(tested.warnings ?? []).map((warning) => `${warning}.`)],
    [],
    figureTable(tested.figures),
    figureTable(control.figures, "control", "Control", `A compared with ${own}, as B is compared with A. In the column B are the values of the control.`),
    facts([
      ["A", side(tested.a)],
      ["B", side(tested.b)],
      ["method", `${design.method === "duet" ? "at the same time" : "in turn"} (${design.method_reason})`],
      ["rounds", `${stopping.rounds} of ${seconds(design.slice_s)} slices in ${seconds(stopping.elapsed_s)}`],
      ["figure of --until", stopping.figure],
      ...labelFacts(run.labels),
      ["version", run.brimful_version],
    ]),
  );
}

function side({ name, url, server_software, slices, left_out }: AbSide): string {
  return [name, name === url ? null : url, server_software, `${slices} slices`, left_out > 0 ? `${left_out} left out` : null].filter((part) => part != null).join(", ");
}
