import { generateKeyPairSync, sign } from 'node:crypto';

/**
 * Creates a self-signed certificate for `localhost` and one IPv4 address, which is valid from 2020 to 2049.
 *
 * The function writes the DER encoding (RFC 5280, 4.1) itself, so that the tests need neither openssl nor a committed private key.
 */
export function selfSignedCertificate(address: readonly number[] = [127, 0, 0, 1]) {
  const { publicKey, privateKey: key } = generateKeyPairSync('ec', {
    namedCurve: 'prime256v1',
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const ecdsaWithSha256 = sequence(der(0x06, '2a8648ce3d040302', 'hex'));
  // Each authority needs its own name: a client that trusts two authorities with the same name finds only one of them.
  const name = der(0x0c, `misbehaving server of ${address.join('.')}`);
  const subject = sequence(der(0x31, sequence(der(0x06, '550403', 'hex'), name)));
  const names = sequence(der(0x82, 'localhost'), der(0x87, Buffer.from(address)));
  const body = sequence(
    der(0xa0, der(0x02, '02', 'hex')),
    der(0x02, '01', 'hex'),
    ecdsaWithSha256,
    subject,
    sequence(der(0x17, '200101000000Z'), der(0x17, '491231000000Z')),
    subject,
    publicKey,
    der(0xa3, sequence(sequence(der(0x06, '551d11', 'hex'), der(0x04, names)))),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, key)]);
  const signed = sequence(body, ecdsaWithSha256, der(0x03, signature)).toString('base64');
  return { key, cert: `-----BEGIN CERTIFICATE-----\n${signed}\n-----END CERTIFICATE-----\n` };
}

/** Encodes one DER value, which consists of a tag, a length and the content. */
function der(tag: number, content: Buffer | string, encoding: BufferEncoding = 'latin1'): Buffer {
  const value = typeof content === 'string' ? Buffer.from(content, encoding) : content;
  const { length } = value;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), value]);
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}
