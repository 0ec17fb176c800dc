/**
 * Returns the value of a protobuf field, or undefined if the value is the field's default. In a response, a string or a number that
 * the Temporal server did not set is empty or 0, never undefined. The operator `??` would therefore keep it (eslint.config.mjs
 * rejects this use of `??`).
 */
export function readProtoField<T extends string | number>(value: T | null | undefined): T | undefined {
  return value === null || value === '' || value === 0 ? undefined : value;
}

/** A protobuf timestamp. A number that JavaScript can't represent exactly is an object whose text is the number. */
interface Timestamp {
  readonly seconds?: number | { toString(): string } | null | undefined;
  readonly nanos?: number | null | undefined;
}

/** Converts a protobuf timestamp of a raw response. @returns undefined if the timestamp is not set */
export function toDate(timestamp: Timestamp | null | undefined): Date | undefined {
  if (!timestamp) return undefined;
  const seconds = Number(String(timestamp.seconds ?? 0));
  return new Date(seconds * 1_000 + Math.floor((timestamp.nanos ?? 0) / 1_000_000));
}
