import { describe, expect, it } from '@jest/globals';
import { gate } from '../../../src/workflows/when-active';

describe('whenActive', () => {
  it.each(['completed', 'archived', 'failed'])('does not matter for a job that is %s', (status) => {
    expect(['send', 'wait', 'reject'].map((choice) => gate(status, choice as 'send'))).toEqual([
      'send',
      'send',
      'send',
    ]);
  });

  it.each(['active', 'hibernating'])('decides for a job that is %s', (status) => {
    expect(gate(status, 'send')).toBe('send');
    expect(gate(status, 'wait')).toBe('wait');
    expect(gate(status, 'reject')).toBe('reject');
  });
});
