// Builds the report into one file, dist/report.html: script and style are inlined and nothing is ever fetched. The
// licences of the packages whose code is in it are in a comment.
//
// brimful puts one document where MARKER stands in that file; `npm run dev` puts the example survey there.
import { defineConfig, type Plugin, type Rolldown } from "vite";
import example from "./example.survey.json" with { type: "json" };

const MARKER = "<!--__BRIMFUL_DOCUMENT__-->";

export default defineConfig({
  base: "./",
  build: {
    modulePreload: false,
    rolldownOptions: { input: "report.html" },
  },
  plugins: [exampleSurvey(), oneFile()],
});

function exampleSurvey(): Plugin {
  return {
    name: "example-survey",
    apply: "serve",
    transformIndexHtml: (html) => html.replace(MARKER, () => element(JSON.stringify(example))),
  };
}

function element(json: string): string {
  return `<script type="application/json" id="survey">${json.replaceAll("<", "\\u003c")}</script>`;
}

/** Moves the script and the style into the page, and forbids the page everything else. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    apply: "build",
    enforce: "post",
    async generateBundle(_, bundle) {
      const page = bundle["report.html"];
      if (page?.type !== "asset") throw new Error("report.html is not among the built files");
      let notices = "";
      for (const folder of packages(bundle)) notices += notice(folder, await this.fs.readFile(`${folder}/LICENSE`, { encoding: "utf8" }));
      let html = swap(String(page.source), /<\/head>/, `${notices}</head>`);
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const text = file.type === "chunk" ? file.code : String(file.source);
        html = file.type === "chunk" ? await inlineScript(html, name, text) : inlineStyle(html, name, text);
        delete bundle[name];
      }
      if (html.split(MARKER).length !== 2) throw new Error(`the built page must hold ${MARKER} exactly once`);
      page.source = html;
    },
  };
}

/** The folders of the packages whose modules are in the bundle. */
function packages(bundle: Rolldown.OutputBundle): string[] {
  const modules = Object.values(bundle).flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  return [...new Set(modules.flatMap((module) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(module)?.[0] ?? []))];
}

function notice(folder: string, licence: string): string {
  const text = `${folder.split("/node_modules/").pop()} is part of this page.\n\n${licence.trim()}`;
  if (text.includes("--")) throw new Error(`the licence in ${folder} would end its comment`);
  return `<!--\n${text}\n-->\n`;
}

async function inlineScript(html: string, name: string, code: string): Promise<string> {
  const script = code.trim().replaceAll("</script", "<\\/script");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(script)));
  const hash = btoa(String.fromCharCode(...digest));
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'`;
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  const inlined = swap(html, tag("script", "src", name), "");
  const body = swap(inlined, /<\/body>/, `<script type="module">${script}</script>\n</body>`);
  return swap(body, /<meta charset="utf-8">/, `<meta charset="utf-8">\n${meta}`);
}

function inlineStyle(html: string, name: string, css: string): string {
  return swap(html, tag("link", "href", name), `<style>${css.trim()}</style>`);
}

/** The element that loads the built file `name`. */
function tag(element: string, attribute: string, name: string): RegExp {
  const file = name.replaceAll(".", "\\.");
  return new RegExp(`<${element}[^>]*${attribute}="\\./${file}"[^>]*>(</${element}>)?\\s*`);
}

function swap(html: string, pattern: RegExp, text: string): string {
  if (!pattern.test(html)) throw new Error(`the built page has no ${pattern}`);
  return html.replace(pattern, () => text);
}
