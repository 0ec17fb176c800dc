import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
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

/** Whether this test run is the one with encrypted payloads (jest.long.config.mjs). */
export function payloadsAreEncrypted(): boolean {
  return (globalThis as { ENCRYPT_PAYLOADS?: boolean }).ENCRYPT_PAYLOADS === true;
}

/** The text in a payload of a history, which is encrypted in the run with encrypted payloads. */
export function payloadText(payload: Payload | null | undefined): string {
  if (!payload) return '';
  const { data } = payloadsAreEncrypted() ? decrypt(payload) : payload;
  return Buffer.from(data ?? []).toString();
}

function encrypt(payload: Payload): Payload {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', KEY, iv);
  const text = Buffer.concat([cipher.update(asText(payload)), cipher.final()]);
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
  return fromText(Buffer.concat([decipher.update(data.subarray(28)), decipher.final()]).toString());
}

function asText({ metadata, data }: Payload): string {
  const fields = Object.entries(metadata ?? {}).map(([name, bytes]) => [name, base64(bytes)]);
  return JSON.stringify({
    metadata: Object.fromEntries(fields) as unknown,
    data: base64(data ?? new Uint8Array()),
  });
}

function fromText(text: string): Payload {
  const { metadata, data } = JSON.parse(text) as { metadata: Record<string, string>; data: string };
  const fields = Object.entries(metadata).map(([name, bytes]) => [name, Buffer.from(bytes, 'base64')]);
  return {
    metadata: Object.fromEntries(fields) as Payload['metadata'] & object,
    data: Buffer.from(data, 'base64'),
  };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
