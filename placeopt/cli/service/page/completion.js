// Completion of problem files in YAML: where the cursor is, and what the JSON Schema allows there.

const KEY = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#[\]{},:'"](?:[^:#]|:(?!\s)|(?<!\s)#)*?)\s*:(?=\s|$)/;
const NAMED = { // keys whose values, or whose keys, are names of other parts
  devices: ["pin", "devices", "between", "from", "to", "uplink_of", "team", "time", "startup", "placement"],
  tasks: ["after", "backward_of"],
};
const ITEM = 0; // the part of a path that stands for any item of a list

const unquoted = (text) => text.trim().replace(/^(["'])(.*)\1$/, "$2");

/** Reads a YAML text up to its end: the path there, what of a word is typed, and whether it is a value; and the names
 * of devices and tasks on the way. Text that is not complete or not valid is read as far as it makes sense. */
export function scan(text) {
  const names = { devices: new Set(), tasks: new Set() };
  const note = (path) => path.length === 2 && names[path[0]]?.add(path[1]);
  let blocks = []; // {indent, part} of the lines above, outermost first
  const flow = []; // {map, key} of open brackets
  let typed = "";
  let value = false;
  const path = () => [...blocks.map(({ part }) => part), ...flow.flatMap(({ map, key }) => (map ? (key === null ? [] : [key]) : [ITEM]))];

  /** Reads the part of a line within brackets, or the value after a key. */
  function inside(rest) {
    typed = "";
    for (let at = 0; at < rest.length; at += 1) {
      const [char, top] = [rest[at], flow.at(-1)];
      if (char === "#" && (at === 0 || /\s/.test(rest[at - 1]))) return;
      if ((char === '"' || char === "'") && !typed.trim()) {
        const end = rest.indexOf(char, at + 1);
        typed = rest.slice(at, end < 0 ? rest.length : end + 1);
        at = end < 0 ? rest.length : end;
      } else if (char === "{" || char === "[") {
        flow.push({ map: char === "{", key: null });
        typed = "";
      } else if (top && (char === "}" || char === "]")) {
        flow.pop();
        typed = "";
      } else if (top && char === ",") {
        top.key = null;
        typed = "";
      } else if (top?.map && char === ":" && top.key === null && /\s|^$/.test(rest[at + 1] ?? "")) {
        top.key = unquoted(typed);
        note(path());
        typed = "";
      } else typed += char;
    }
    value = !flow.length || !flow.at(-1).map || flow.at(-1).key !== null;
  }

  for (const line of text.split("\n")) {
    if (flow.length) {
      inside(line);
      continue;
    }
    let indent = line.length - line.trimStart().length;
    let rest = line.slice(indent);
    [typed, value] = [rest, false];
    if (rest.startsWith("#") || (!rest && line !== text.slice(text.lastIndexOf("\n") + 1))) continue;
    blocks = blocks.filter((block) => block.indent < indent || (block.indent === indent && block.part === ITEM && /^-(\s|$)/.test(rest)));
    while (/^-(\s|$)/.test(rest)) {
      blocks = blocks.filter((block) => block.indent < indent);
      blocks.push({ indent, part: ITEM });
      const more = rest.length - rest.slice(1).trimStart().length;
      indent += more;
      rest = rest.slice(more);
    }
    typed = rest;
    const key = KEY.exec(rest);
    if (key) {
      blocks.push({ indent, part: unquoted(key[1]) });
      note(path());
      inside(rest.slice(key[0].length));
      value = value || !flow.length;
    } else if (/^[[{]/.test(rest)) inside(rest);
  }
  return { path: path(), typed: typed.trimStart(), value, names };
}

/** Returns the schemas that a schema consists of: references followed, alternatives listed. */
function alternatives(root, schema) {
  if (!schema || typeof schema !== "object") return [];
  if (schema.$ref) return alternatives(root, schema.$ref.split("/").slice(1).reduce((found, part) => found[part], root));
  const more = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  const own = schema.type || schema.properties || schema.enum ? [schema] : [];
  return [...own, ...more.flatMap((each) => alternatives(root, each))];
}

/** Returns the schemas of what is at a path. */
function schemasAt(root, path) {
  return path.reduce(
    (schemas, part) => schemas.flatMap((each) => alternatives(root, part === ITEM ? each.items : each.properties?.[part] ?? each.additionalProperties)),
    alternatives(root, root),
  );
}

const firstSentence = (text) => (text ?? "").replaceAll("\n", " ").replace(/^(.{20,160}?[.:])\s.*$/, "$1");

/** Returns the completions at the end of a text, as [label, kind, explanation]; `whole` is the text with what follows. */
export function proposals(root, text, whole = text) {
  const { path, typed, value } = scan(text);
  const { names } = scan(whole);
  const found = new Map();
  const add = (label, kind, info) => found.has(label) || found.set(label, [label, kind, info]);
  const schemas = schemasAt(root, path);
  const within = path.filter((part) => part !== ITEM).at(-1);
  const referred = Object.keys(NAMED).find((kind) => NAMED[kind].includes(within) && path.length > 1);
  const listed = value || path.at(-1) === ITEM;
  if (!value)
    for (const schema of schemas) {
      for (const [key, { description }] of Object.entries(schema.properties ?? {})) add(key, "property", firstSentence(description));
      for (const key of schema.propertyNames?.enum ?? []) add(key, "property", "");
    }
  if (listed)
    for (const schema of schemas) {
      for (const each of schema.enum ?? []) add(String(each), "enum", "");
      if (schema.type === "boolean") for (const each of ["true", "false"]) add(each, "keyword", "");
      for (const each of schema.examples ?? []) add(String(each), "text", schema.description ?? "");
    }
  if (referred) for (const name of names[referred]) if (name !== path[1]) add(name, value ? "variable" : "property", referred === "tasks" ? "a task" : "a device");
  return { typed, value, options: [...found.values()] };
}
