// Formats numbers and texts.

const short = (value, digits) => String(Number(value.toPrecision(digits)));

/** Formats seconds in a suitable unit: 12.5 ms. */
function secondsText(seconds, digits = 5) {
  if (seconds === 0) return "0 s";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]])
    if (Math.abs(seconds) >= size) return `${short(seconds / size, digits)} ${unit}`;
  return `${short(seconds / 1e-9, digits)} ns`;
}

/** Formats bytes in a suitable unit: 1.5 GiB. */
function sizeText(bytes) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(bytes) < 1024) return `${short(bytes, 4)} ${unit}`;
    bytes /= 1024;
  }
  return `${short(bytes, 4)} TiB`;
}

const countText = (number) => number.toLocaleString("en");
function shareText(share, digits = 1) {
  const text = (100 * share).toFixed(digits);
  return share > 0 && Number(text) === 0 ? `<${(10 ** -digits).toFixed(digits)}%` : `${text}%`;
}

/** Formats an objective value; `kind` is that of `kind_of` in summaries.py. */
function valueText(value, kind, resolution) {
  if (value === null || value === undefined) return "-";
  if (kind === "ticks") return secondsText(value * resolution);
  if (kind === "bytes") return sizeText(value);
  if (kind === "nanojoules") return `${short(value / 1e9, 6)} J`;
  if (kind === "billionths") return short(value / 1e9, 6);
  if (kind === "millionths") return `${short(value / 1e4, 4)} %`;
  return short(value, 8);
}

/** Puts a name on one line: shortened, without control characters and changes of the writing direction. */
function oneLine(text, most = 200) {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Bidi_Control}]/gu, "\ufffd");
}

/** Returns the smallest step of 1, 2 or 5 times a power of ten that is at least `least`. */
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return factor * power;
  return 10 * power;
}
