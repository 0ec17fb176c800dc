/**
 * A data converter that encrypts every payload with AES-GCM, in the format of Temporal's encryption sample, so that codec
 * servers and other languages read it too. Give its path to worker and starter:
 *
 *   FOLLOW_UP_DATA_CONVERTER=./data-converter.js PAYLOAD_KEY_FILE=/run/secrets/payload-key node dist/worker.js
 *
 * PAYLOAD_KEY_FILE holds 32 random bytes in base64 (`openssl rand -base64 32`). Keep old keys as long as there are payloads
 * that they have encrypted: give each an id, and let `decrypt` choose by `encryption-key-id`.
 */
const { createCipheriv, createDecipheriv, randomBytes } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { temporal } = require('@temporalio/proto');

const { Payload } = temporal.api.common.v1;

const ENCODING = Buffer.from('binary/encrypted');
const KEY_ID = Buffer.from(process.env.PAYLOAD_KEY_ID ?? 'payload-key-1');
const key = Buffer.from(readFileSync(process.env.PAYLOAD_KEY_FILE, 'utf8'), 'base64');

const IV_BYTES = 12;
const TAG_BYTES = 16;

function encrypt(payload) {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const data = [iv, cipher.update(Payload.encode(payload).finish()), cipher.final(), cipher.getAuthTag()];
  return { metadata: { encoding: ENCODING, 'encryption-key-id': KEY_ID }, data: Buffer.concat(data) };
}

function decrypt(payload) {
  // What was written before, or by somebody who does not encrypt.
  if (!ENCODING.equals(Buffer.from(payload.metadata?.encoding ?? []))) return payload;
  const data = Buffer.from(payload.data);
  const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, IV_BYTES));
  decipher.setAuthTag(data.subarray(-TAG_BYTES));
  return Payload.decode(
    Buffer.concat([decipher.update(data.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]),
  );
}

exports.dataConverter = {
  payloadCodecs: [
    {
      encode: async (payloads) => payloads.map(encrypt),
      decode: async (payloads) => payloads.map(decrypt),
    },
  ],
};
