import { deserialize, serialize } from 'node:v8';
import type { DataConverter, Payload } from '@temporalio/common';

const ENCODING = Buffer.from('binary/encrypted');

/** A data converter as teams with secrets have one: without it nobody finds a text in a payload. */
export const ENCRYPTING: DataConverter = {
  payloadCodecs: [
    {
      encode: (payloads) => Promise.resolve(payloads.map(encrypt)),
      decode: (payloads) => Promise.resolve(payloads.map(decrypt)),
    },
  ],
};

const scramble = (data: Uint8Array) => Buffer.from(data.map((byte) => byte ^ 0xa5));

function encrypt({ metadata, data }: Payload): Payload {
  return { metadata: { encoding: ENCODING }, data: scramble(serialize({ metadata, data })) };
}

/** Throws for a payload that is not encrypted: everything of ours must have passed the codec. */
function decrypt(payload: Payload): Payload {
  if (!ENCODING.equals(payload.metadata?.encoding ?? Buffer.of()))
    throw new TypeError(`a payload is not encrypted: ${Buffer.from(payload.data ?? []).toString()}`);
  return deserialize(scramble(payload.data ?? Buffer.of())) as Payload;
}
