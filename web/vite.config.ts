// Builds the report page as a single file, dist/report.html, which contains scripts and styles, so that it loads
// nothing from the network. A comment in the file contains the licences of the packages whose code is included.
//
// brimful replaces MARKER in the file by a document; `npm run dev` replaces it by the example survey.
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
    transformIndexHtml: (html) => html.replace(MARKER, () => documentElement(JSON.stringify(example))),
  };
}

function documentElement(json: string): string {
  return `<script type="application/json" id="survey">${json.replaceAll("<", "\\u003c")}</script>`;
}

/** Moves the script and the style into the page, and forbids the page to load or run anything else. */
function oneFile(): Plugin {
  return {
    name: "one-file",
    apply: "build",
    enforce: "post",
    async generateBundle(_, bundle) {
      const page = bundle["report.html"];
      if (page?.type !== "asset") throw new Error("report.html is not among the built files");
      let notices = "";
      for (const folder of packageFolders(bundle)) {
        const [manifest, licence] = await Promise.all(
          ["package.json", "LICENSE"].map((name) => this.fs.readFile(`${folder}/${name}`, { encoding: "utf8" })),
        );
        notices += licenceNotice(JSON.parse(manifest!), licence!);
      }
      let html = replaceMatch(String(page.source), /<\/head>/, `${notices}</head>`);
      for (const [name, file] of Object.entries(bundle)) {
        if (file === page) continue;
        const text = file.type === "chunk" ? file.code : String(file.source);
        html = file.type === "chunk" ? await inlineScript(html, name, text) : inlineStyle(html, name, text);
        delete bundle[name];
      }
      if (html.split(MARKER).length !== 2) throw new Error(`the built page must contain ${MARKER} exactly once`);
      page.source = html;
    },
  };
}

/** The folders of the packages whose modules are in the bundle. */
function packageFolders(bundle: Rolldown.OutputBundle): string[] {
  const modules = Object.values(bundle).flatMap((file) => (file.type === "chunk" ? file.moduleIds : []));
  return [...new Set(modules.flatMap((module) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(module)?.[0] ?? []))];
}

/** A comment with a licence. scripts/licences reads it. */
function licenceNotice(manifest: { name: string; version: string; license: string }, licence: string): string {
  const { name, version, license } = manifest;
  const text = `${name} ${version} (${license}) is part of this page.\n\n${licence.trim()}`;
  if (text.includes("--")) throw new Error(`the licence of ${name} contains "--", which would end the comment around it`);
  return `<!--\n${text}\n-->\n`;
}

async function inlineScript(html: string, name: string, code: string): Promise<string> {
  const script = code.trim().replaceAll("</script", "<\\/script");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(script)));
  const hash = btoa(String.fromCharCode(...digest));
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'`;
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  const inlined = replaceMatch(html, loadingElement("script", "src", name), "");
  const body = replaceMatch(inlined, /<\/body>/, `<script type="module">${script}</script>\n</body>`);
  return replaceMatch(body, /<meta charset="utf-8">/, `<meta charset="utf-8">\n${meta}`);
}

function inlineStyle(html: string, name: string, css: string): string {
  return replaceMatch(html, loadingElement("link", "href", name), `<style>${css.trim()}</style>`);
}

/** Matches the element that loads the built file `name`. */
function loadingElement(element: string, attribute: string, name: string): RegExp {
  const file = name.replaceAll(".", "\\.");
  return new RegExp(`<${element}[^>]*${attribute}="\\./${file}"[^>]*>(</${element}>)?\\s*`);
}

/** Replaces the first match of `pattern`, of which there must be one. */
function replaceMatch(html: string, pattern: RegExp, text: string): string {
  if (!pattern.test(html)) throw new Error(`the built page has no ${pattern}`);
  return html.replace(pattern, () => text);
}
