import type { DataConverter, PayloadCodec } from '@temporalio/common';

const NOTHING = { metadata: { encoding: Buffer.from('binary/null') } };

const codec: PayloadCodec = {
  encode: (payloads) => Promise.resolve(payloads),
  decode: (payloads) => Promise.resolve(payloads.map(() => NOTHING)),
};

/**
 * For lists: it looks at no payload. A list needs no memo, and a single one that another service has encrypted would end
 * it.
 */
export const BLIND_CONVERTER: DataConverter = { payloadCodecs: [codec] };
