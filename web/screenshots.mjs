// Saves screenshots (PNG) of each page of the report: 1200 and 380 px wide, in light and dark colours, and as printed.
// scripts/screenshots runs this script.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch, report } from "./test/launch.mjs";

const [folder, ...chosen] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: scripts/screenshots DIR [DOCUMENT.json…]");
  process.exit(2);
}
const absolute = (path) => new URL(path, import.meta.url).pathname;
const planner = readdirSync(absolute("./test/examples/")).map((file) => absolute(`./test/examples/${file}`));
const documents = chosen.length > 0 ? chosen : [absolute("./example.survey.json"), absolute("./test/profile-example.json"), ...planner];
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "brimful-screenshots-"));
const browser = await launch(join(scratch, "profile"));
try {
  for (const document of documents) {
    const name = document.split("/").at(-1).replace(/(\.survey|-example)?\.json$/, "");
    const file = join(scratch, `${name}.html`);
    writeFileSync(file, report(readFileSync(document, "utf8")));
    const page = await browser.newPage();
    const save = (variant) => page.screenshot({ path: join(folder, `${name}-${variant}.png`), fullPage: true });
    for (const width of [1200, 380]) {
      await page.setViewportSize({ width, height: 800 });
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme, media: "screen" });
        await page.goto(pathToFileURL(file).href);
        await save(`${width}-${colorScheme}`);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (overflow > 0) console.error(`${name}: the page is ${overflow} px wider than the window of ${width} px`);
      }
    }
    // Size of an A4 page without its margins, in CSS pixels (96 per inch).
    await page.setViewportSize({ width: 718, height: 1047 });
    await page.emulateMedia({ colorScheme: "light", media: "print" });
    await page.goto(pathToFileURL(file).href);
    await save("print");
    await page.close();
    console.log(`${name}: 5 pictures`);
  }
} finally {
  await browser.close();
  rmSync(scratch, { recursive: true, force: true });
}
