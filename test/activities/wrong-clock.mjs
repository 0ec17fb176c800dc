// For `node --import`: a worker whose clock is wrong by TEST_CLOCK_SKEW_MS milliseconds. Its monotonic clock is right.
import process from 'node:process';

const skewMs = Number(process.env.TEST_CLOCK_SKEW_MS);
const RightDate = Date;

globalThis.Date = class extends RightDate {
  constructor(...given) {
    if (given.length === 0) super(RightDate.now() + skewMs);
    else super(...given);
  }

  static now() {
    return RightDate.now() + skewMs;
  }
};
