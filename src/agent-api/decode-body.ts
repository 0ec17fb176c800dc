import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import type { RequestFailure } from '../contract/request-failure';
import { isRecord } from '../contract/checks';
import { singleLine } from '../contract/text';

/** The maximum size of a body, before and after decoding. A job has a few hundred bytes. */
export const MAX_BODY_BYTES = 1_048_576;

export const TOO_LARGE: RequestFailure = {
  label: 'too_large',
  message: 'the response body has more than 1 MiB',
};

/** The label of a response whose `Content-Encoding` the worker can't decode. */
export const BAD_ENCODING = 'bad_encoding';

const MAX_NAME_CHARACTERS = 60;

const LIMIT = { maxOutputLength: MAX_BODY_BYTES };
const gunzip = (body: Buffer) => gunzipSync(body, LIMIT);

/** The encodings that HTTP clients decode (RFC 9110, 8.4.1). Each decoder ends as soon as its output is longer than the maximum. */
const DECODERS: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  '': (body) => body,
  identity: (body) => body,
  gzip: gunzip,
  'x-gzip': gunzip,
  // Some servers send raw data, without the header of zlib. In this header, the lower four bits of the first byte are 8.
  deflate: (body) => (((body[0] ?? 0) & 0x0f) === 8 ? inflateSync(body, LIMIT) : inflateRawSync(body, LIMIT)),
  br: (body) => brotliDecompressSync(body, LIMIT),
};

/**
 * Decodes a body. The worker requests an uncompressed response, but a gateway may compress the response nevertheless. A part of a
 * compressed body is not decoded, because its text could end within the API key, which would then not be redacted.
 *
 * @param contentEncoding the response's `Content-Encoding` header, or an empty string if the response has none
 * @returns the decoded body, or the reason why the body can't be decoded
 */
export function decodeBody(body: Buffer, contentEncoding: string): Buffer | RequestFailure {
  const name = singleLine(contentEncoding, MAX_NAME_CHARACTERS);
  // A response without a body may name an encoding.
  if (body.length === 0) return body;
  const encoding = name.toLowerCase();
  const decode = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
  if (decode === undefined)
    return badEncoding(`${name}, which the worker can't decode; the worker requests no encoding`);
  try {
    return decode(body);
  } catch (error) {
    if (isRecord(error) && error.code === 'ERR_BUFFER_TOO_LARGE') return TOO_LARGE;
    // The decoder's error is not shown, because it may contain a part of the body.
    return badEncoding(`${name}, but its body is not valid ${name}`);
  }
}

function badEncoding(text: string): RequestFailure {
  return { label: BAD_ENCODING, message: `the response has the encoding ${text}` };
}
