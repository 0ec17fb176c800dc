export type JsonObject = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function typeName(value: unknown): string {
  if (value === undefined) return 'absent';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `of type ${typeof value}`;
}

/** Bytes of a value as JSON in UTF-8, which is what a payload of Temporal holds. */
export function jsonBytes(value: unknown): number {
  return utf8Bytes(JSON.stringify(value));
}

/** It counts without encoding: a batch may hold a gigabyte of prompts. JSON writes lone surrogates as escapes. */
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
