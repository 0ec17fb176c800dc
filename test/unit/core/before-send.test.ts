import { describe, expect, it } from '@jest/globals';
import { decideSend } from '../../../src/core/evidence';

const job = (status: string) => ({ status, prLink: null, archivedAt: null });

describe('the look before a POST', () => {
  it('allows it to a job in a terminal status, whatever whenActive says', () => {
    for (const status of ['completed', 'archived', 'failed']) {
      for (const whenActive of ['send', 'wait', 'reject'] as const) {
        expect(decideSend(job(status), whenActive, null)).toBe('send');
      }
    }
  });

  it('leaves it to whenActive for an active job, and for a status that nobody knows', () => {
    for (const status of ['active', 'pondering']) {
      for (const whenActive of ['send', 'wait', 'reject'] as const) {
        expect(decideSend(job(status), whenActive, null)).toBe(whenActive);
      }
    }
  });

  it('finds the message of an earlier POST where a job that was at rest has moved', () => {
    expect(decideSend(job('active'), 'send', job('completed'))).toBe('arrived');
    expect(decideSend(job('failed'), 'reject', job('completed'))).toBe('arrived');
    expect(decideSend(job('completed'), 'send', job('completed'))).toBe('send');
    expect(decideSend(job('active'), 'send', job('active'))).toBe('send');
    expect(decideSend(job('active'), 'wait', job('active'))).toBe('wait');
  });
});
