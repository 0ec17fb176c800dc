import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { expect, it } from '@jest/globals';
import { BAD_ENCODING, decodeBody, MAX_BODY_BYTES, TOO_LARGE } from '../../src/agent-api/decode-body';

/** The default quality of brotli takes minutes for a large body on a busy machine. */
const compressQuickly = (body: Buffer) =>
  brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });

const BODY = Buffer.from('{"id":"j","status":"active"}');

// Proves A12.
it.each<[string, Buffer]>([
  ['', BODY],
  ['identity', BODY],
  ['gzip', gzipSync(BODY)],
  [' GZIP ', gzipSync(BODY)],
  ['x-gzip', gzipSync(BODY)],
  ['deflate', deflateSync(BODY)],
  ['deflate', deflateRawSync(BODY)],
  ['br', brotliCompressSync(BODY)],
])('decodes a body with the encoding %j', (encoding, body) => {
  expect(decodeBody(body, encoding)).toEqual(BODY);
});

it('a body without an encoding, and an empty body with an encoding, stay the same', () => {
  expect(decodeBody(BODY, '')).toEqual(BODY);
  expect(decodeBody(Buffer.alloc(0), 'gzip')).toEqual(Buffer.alloc(0));
});

// A body of a few kilobytes can be a bomb, which decodes to gigabytes.
// Proves A12.
it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['br', compressQuickly],
])('a body with the encoding %s may have at most 1 MiB after decoding', (encoding, encode) => {
  const largest = encode(Buffer.alloc(MAX_BODY_BYTES));
  const bomb = encode(Buffer.alloc(8 * MAX_BODY_BYTES));
  expect(decodeBody(largest, encoding)).toHaveLength(MAX_BODY_BYTES);
  expect(decodeBody(bomb, encoding)).toEqual(TOO_LARGE);
});

it.each([
  ['zstd', "zstd, which the worker can't decode; the worker requests no encoding"],
  ['gzip, br', "gzip, br, which the worker can't decode; the worker requests no encoding"],
  ['constructor', "constructor, which the worker can't decode; the worker requests no encoding"],
  ['gzip', 'gzip, but its body is not valid gzip'],
  ['br', 'br, but its body is not valid br'],
])('names the encoding %j of a body that cannot be decoded', (encoding, text) => {
  const message = `the response has the encoding ${text}`;
  expect(decodeBody(BODY, encoding)).toEqual({ label: BAD_ENCODING, message });
});

// A text that ends within the API key would not be redacted.
it.each([
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['br', brotliCompressSync],
])('does not decode an incomplete body with the encoding %s', (encoding, encode) => {
  const text = Array.from({ length: 5_000 }, (_, n) => String(n * 7_919)).join(' ');
  const part = encode(Buffer.from(text)).subarray(0, -10);
  expect(decodeBody(part, encoding)).toMatchObject({ label: BAD_ENCODING });
});
