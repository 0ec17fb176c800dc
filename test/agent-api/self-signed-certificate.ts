import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface SelfSignedCertificate {
  readonly key: string;
  readonly cert: string;
}

const DAY_MS = 86_400_000;

/**
 * A certificate for `localhost` and one address, which is its own authority, valid from yesterday to tomorrow. Made here in DER
 * (RFC 5280, 4.1), so that neither openssl nor a committed private key is needed.
 */
export function selfSignedCertificate(address: readonly number[] = [127, 0, 0, 1]): SelfSignedCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
  // Whoever trusts two authorities of one name finds only one of them.
  const name = Buffer.from(`misbehaving server of ${address.join('.')}`);
  const subject = sequence(der(0x31, sequence(oid('550403'), der(0x0c, name))));
  const names = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from(address)));
  const isAuthority = sequence(der(0x01, Buffer.from([0xff])));
  const extensions = sequence(
    sequence(oid('551d11'), der(0x04, names)),
    sequence(oid('551d13'), der(0x04, isAuthority)),
  );
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    subject,
    sequence(utcTime(Date.now() - DAY_MS), utcTime(Date.now() + DAY_MS)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]);
  const signed = sequence(body, ecdsaWithSha256, der(0x03, signature));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${signed.toString('base64')}\n-----END CERTIFICATE-----\n`,
  };
}

/** One DER value: tag, length, content. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\D/g, '').slice(2, 14);
  return der(0x17, Buffer.from(`${digits}Z`));
}
