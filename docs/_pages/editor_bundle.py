"""Bundle CodeMirror 6 for the page of the service: `python docs/_pages/editor_bundle.py`, with Node.js and npm.

All packages have fixed versions, so that the same bundle is made again; a new version is a change of `VERSIONS`.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[2] / "placeopt" / "cli" / "service" / "page"

VERSIONS = {
    "@codemirror/autocomplete": "6.20.4",
    "@codemirror/commands": "6.11.1",
    "@codemirror/lang-yaml": "6.1.3",
    "@codemirror/language": "6.13.1",
    "@codemirror/lint": "6.9.8",
    "@codemirror/search": "6.7.2",
    "@codemirror/state": "6.7.6",
    "@codemirror/streamparser": "6.0.0",
    "@codemirror/view": "6.43.15",
    "@lezer/common": "1.5.5",
    "@lezer/highlight": "1.2.5",
    "@lezer/lr": "1.4.12",
    "@lezer/yaml": "1.0.4",
    "@marijn/find-cluster-break": "1.0.3",
    "crelt": "1.0.7",
    "style-mod": "4.1.5",
    "w3c-keyname": "2.2.8",
}
BUNDLER = {"esbuild": "0.28.2"}

ENTRY = """
export { EditorState } from "@codemirror/state";
export {
  EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers,
} from "@codemirror/view";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { forceLinting, lintGutter, linter, lintKeymap } from "@codemirror/lint";
export { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
export { yaml } from "@codemirror/lang-yaml";
export { classHighlighter } from "@lezer/highlight";
"""


def main() -> None:
    """Write codemirror.js and the licences of what is in it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = {"private": True, "dependencies": VERSIONS, "devDependencies": BUNDLER}
        (folder / "package.json").write_text(json.dumps(package), encoding="utf-8")
        (folder / "entry.js").write_text(ENTRY, encoding="utf-8")
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
        options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--legal-comments=none", "--charset=utf8"]
        banner = "--banner:js=/* CodeMirror 6 and Lezer, MIT licence: see codemirror.txt */"
        out = f"--outfile={PAGE / 'codemirror.js'}"
        subprocess.run(["npx", "esbuild", "entry.js", *options, banner, out], cwd=folder, check=True)
        texts: dict[str, list[str]] = {}
        for each, stated in VERSIONS.items():
            source = folder / "node_modules" / each
            found = json.loads((source / "package.json").read_text(encoding="utf-8"))["version"]
            assert found == stated, f"{each} is {found}; expected {stated}"
            licence = (source / "LICENSE").read_text(encoding="utf-8").strip()
            texts.setdefault(licence, []).append(f"{each} {stated}")
    parts = [f"{', '.join(packages)}\n\n{licence}\n" for licence, packages in texts.items()]
    (PAGE / "codemirror.txt").write_text(f"\n{'-' * 80}\n\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
