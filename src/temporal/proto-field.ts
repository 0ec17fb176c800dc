/**
 * Returns the value of a protobuf field, or undefined if the value is the field's default. In a response, a string or a number that
 * the Temporal server did not set is empty or 0, never undefined. The operator `??` would therefore keep it (eslint.config.mjs
 * rejects this use of `??`).
 */
export function readProtoField<T extends string | number>(value: T | null | undefined): T | undefined {
  return value === null || value === '' || value === 0 ? undefined : value;
}
