import { describe, expect, it } from '@jest/globals';
import type { SendOutcome } from '../../../src/contract/activities';
import { afterSend, NOT_SENT } from '../../../src/workflows/delivery';

const words = { label: '', message: '' };
const job = { id: 'j', status: 'active', source: { repository: null, ref: null } };
const accepted: SendOutcome = {
  verdict: 'accepted',
  job: { ...job, model: null, prLink: null, createdAt: null, archivedAt: null },
};
const refused: SendOutcome = { verdict: 'not-sent', repeatable: true, answered: false, ...words };
const limited: SendOutcome = { verdict: 'not-sent', repeatable: true, answered: true, ...words };
const unknown: SendOutcome = { verdict: 'unknown', ...words };

describe('the delivery after a POST', () => {
  it('counts the POSTs that were not provably kept from the service', () => {
    expect(afterSend(NOT_SENT, refused)).toEqual({ verdict: 'not-sent', confirmedBy: null, sends: 0 });
    expect(afterSend(NOT_SENT, limited)).toEqual({ verdict: 'not-sent', confirmedBy: null, sends: 1 });
    expect(afterSend(NOT_SENT, unknown)).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
    expect(afterSend(afterSend(NOT_SENT, limited), accepted)).toEqual({
      verdict: 'accepted',
      confirmedBy: 'response',
      sends: 2,
    });
  });

  it('stays unknown when a later POST was certainly not sent or rejected', () => {
    const once = afterSend(NOT_SENT, unknown);
    expect(afterSend(once, refused)).toEqual({ verdict: 'unknown', confirmedBy: null, sends: 1 });
    expect(afterSend(once, { verdict: 'rejected', ...words })).toMatchObject({
      verdict: 'unknown',
      sends: 2,
    });
  });
});
