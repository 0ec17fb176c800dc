/** Bytes that a value takes as JSON in UTF-8, which is what Temporal's payload holds. */
export function jsonBytes(value: unknown): number {
  return utf8Bytes(JSON.stringify(value));
}

/** Counted, not encoded: a batch may hold a gigabyte of prompts. JSON writes lone surrogates as escapes. */
function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    // Each half of a surrogate pair stands for two of the four bytes of its character.
    const isHalf = unit >= 0xd800 && unit <= 0xdfff;
    bytes += unit < 0x800 || isHalf ? 1 : 2;
  }
  return bytes;
}
