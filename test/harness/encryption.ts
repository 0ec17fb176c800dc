import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import type { DataConverter, Payload } from '@temporalio/common';

const KEY = randomBytes(32);
const ENCODING = Buffer.from('binary/encrypted');

/** A data converter as teams with secrets have one: nobody without its key can read a payload. */
export const ENCRYPTING: DataConverter = {
  payloadCodecs: [
    {
      encode: (payloads) => Promise.resolve(payloads.map(encrypt)),
      decode: (payloads) => Promise.resolve(payloads.map(decrypt)),
    },
  ],
};

function encrypt({ metadata, data }: Payload): Payload {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', KEY, iv);
  const text = Buffer.concat([cipher.update(serialize({ metadata, data })), cipher.final()]);
  return { metadata: { encoding: ENCODING }, data: Buffer.concat([iv, cipher.getAuthTag(), text]) };
}

/** Throws for a payload that is not encrypted: everything of ours must have passed the codec. */
function decrypt(payload: Payload): Payload {
  const data = Buffer.from(payload.data ?? []);
  if (Buffer.compare(Buffer.from(payload.metadata?.encoding ?? []), ENCODING) !== 0) {
    throw new TypeError(`a payload is not encrypted: ${data.toString()}`);
  }
  const decipher = createDecipheriv('aes-256-gcm', KEY, data.subarray(0, 12));
  decipher.setAuthTag(data.subarray(12, 28));
  return deserialize(Buffer.concat([decipher.update(data.subarray(28)), decipher.final()])) as Payload;
}
