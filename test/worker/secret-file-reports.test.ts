import { expect, it, jest } from '@jest/globals';
import { SecretFileReports } from '../../src/worker/secret-file-reports';

it('logs and counts a secret file that can’t be used, and logs when it can be used again', () => {
  const reports = new SecretFileReports();
  const log = { warn: jest.fn(), info: jest.fn() };
  reports.logger = log;
  const add = jest.fn();
  const meter = { createCounter: () => ({ add }) } as never;
  // Before the worker is connected, the problem is only logged.
  reports.report('AGENT_API_KEY_FILE', 'is empty');
  reports.countWith(meter, 'agents');
  reports.report('AGENT_API_KEY_FILE', "can't be read: ENOENT");
  reports.report('AGENT_API_KEY_FILE', undefined);
  const kept = 'The last valid secret stays in use; correct the file';
  expect(log.warn.mock.calls).toEqual([
    [`the file of AGENT_API_KEY_FILE can't be used: it is empty. ${kept}`],
    [`the file of AGENT_API_KEY_FILE can't be used: it can't be read: ENOENT. ${kept}`],
  ]);
  expect(log.info.mock.calls).toEqual([['the file of AGENT_API_KEY_FILE can be used again']]);
  const counted = { namespace: 'agents', variable: 'AGENT_API_KEY_FILE' };
  expect(add.mock.calls).toEqual([
    [0, counted],
    [0, { ...counted, variable: 'FOLLOW_UP_NOTIFY_SECRET_FILE' }],
    [1, counted],
  ]);
});
