// Unpacks arrays: little-endian, deflated, in base64 (see packing.py).

const KINDS = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };

/** Returns the arrays of the page by name; `table` holds the kind, offset and length of each. */
async function unpacked(text, table) {
  const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const found = {};
  for (const [name, { kind, offset, length }] of Object.entries(table))
    found[name] = new KINDS[kind](buffer, offset, length);
  return found;
}

/** Returns the first index in [low, high) of a sorted array whose value is above `limit`, else `high`. */
function firstAbove(array, limit, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the first index in [low, high) of a sorted array whose value is at least `limit`, else `high`. */
function firstFrom(array, limit, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] >= limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
