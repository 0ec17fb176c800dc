/**
 * A Temporal plugin that encrypts every payload with AES-GCM. The format is the format of Temporal's encryption sample, so codec servers and
 * other languages can read it. Set its path on the workers and on the CLI:
 *
 *   FOLLOW_UP_PLUGINS=./plugin.js PAYLOAD_KEY_FILE=/run/secrets/payload-key node dist/worker.js
 *
 * PAYLOAD_KEY_FILE contains 32 random bytes in base64 (`openssl rand -base64 32`). Keep an old key as long as payloads exist that it has
 * encrypted. Each key needs its own ID, and `decrypt` must then choose the key from `encryption-key-id`.
 */
const { createCipheriv, createDecipheriv, randomBytes } = require('node:crypto');
const { readFileSync } = require('node:fs');
const { temporal } = require('@temporalio/proto');

const { Payload } = temporal.api.common.v1;

const ENCODING = Buffer.from('binary/encrypted');
const KEY_ID = Buffer.from(process.env.PAYLOAD_KEY_ID ?? 'payload-key-1');
const key = Buffer.from(readFileSync(process.env.PAYLOAD_KEY_FILE, 'utf8'), 'base64');
if (key.length !== 32) throw new Error('PAYLOAD_KEY_FILE must contain 32 bytes in base64');

const IV_BYTES = 12;
const TAG_BYTES = 16;

function encrypt(payload) {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const data = [iv, cipher.update(Payload.encode(payload).finish()), cipher.final(), cipher.getAuthTag()];
  return { metadata: { encoding: ENCODING, 'encryption-key-id': KEY_ID }, data: Buffer.concat(data) };
}

function decrypt(payload) {
  // The payload was written before the encryption was introduced, or by a client without encryption.
  if (!ENCODING.equals(Buffer.from(payload.metadata?.encoding ?? []))) return payload;
  const data = Buffer.from(payload.data);
  const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, IV_BYTES));
  decipher.setAuthTag(data.subarray(-TAG_BYTES));
  return Payload.decode(
    Buffer.concat([decipher.update(data.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]),
  );
}

const dataConverter = {
  payloadCodecs: [
    {
      encode: async (payloads) => payloads.map(encrypt),
      decode: async (payloads) => payloads.map(decrypt),
    },
  ],
};

module.exports = {
  name: 'payload-encryption',
  configureClient: (options) => ({ ...options, dataConverter }),
  configureWorker: (options) => ({ ...options, dataConverter }),
};
