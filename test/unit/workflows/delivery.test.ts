import { describe, expect, it } from '@jest/globals';
import type { PostOutcome } from '../../../src/core/activities';
import { afterPost, NOT_SENT } from '../../../src/workflows/follow-up/state';

const words = { label: '', message: '' };
const job = { id: 'j', status: 'active', source: { repository: null, ref: null } };
const accepted: PostOutcome = {
  verdict: 'accepted',
  job: { ...job, model: null, prLink: null, createdAt: null, archivedAt: null },
};
const refused: PostOutcome = { verdict: 'not-sent', repeatable: true, answered: false, ...words };
const limited: PostOutcome = { verdict: 'not-sent', repeatable: true, answered: true, ...words };
const unknown: PostOutcome = { verdict: 'unknown', ...words };

describe('the delivery after a POST', () => {
  it('counts the POSTs that were not provably kept from the service', () => {
    expect(afterPost(NOT_SENT, refused)).toEqual({ verdict: 'not-sent', confirmedBy: null, sends: 0 });
    expect(afterPost(NOT_SENT, limited)).toEqual({ verdict: 'not-sent', confirmedBy: null, sends: 1 });
    expect(afterPost(NOT_SENT, unknown)).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
    expect(afterPost(afterPost(NOT_SENT, limited), accepted)).toEqual({
      verdict: 'accepted',
      confirmedBy: 'response',
      sends: 2,
    });
  });

  it('stays unknown when a later POST was certainly not sent or rejected', () => {
    const once = afterPost(NOT_SENT, unknown);
    expect(afterPost(once, refused)).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
    expect(afterPost(once, { verdict: 'rejected', ...words })).toMatchObject({
      verdict: 'unknown',
      sends: 2,
    });
  });
});
