import http from 'node:http';
import { expect, it, jest } from '@jest/globals';
import { DefaultLogger } from '@temporalio/worker';
import { handleArguments } from '../../src/worker/command-line';
import { keyCheck, startHealthServer } from '../../src/worker/health';
import { UNUSED_AGENT_API } from '../harness/fixtures';

it('checks the key at most once a minute until the agent service accepts it, and stays ready while the agent service returns 503', async () => {
  const responses = [503, 401, 404].map((httpStatus) => {
    const message = `http ${httpStatus}`;
    return { kind: 'failure', label: `http_${httpStatus}`, message, httpStatus } as const;
  });
  const getJob = jest.fn(() =>
    Promise.resolve(responses.shift() ?? Promise.reject(new Error('the key was checked again'))),
  );
  const reasons: string[] = [];
  const check = keyCheck({ ...UNUSED_AGENT_API, getJob }, { warn: (reason) => reasons.push(reason) });
  const clock = jest.spyOn(performance, 'now');
  const results = [];
  for (const now of [0, 59_000, 61_000, 120_000, 122_000, 10_000_000]) {
    clock.mockReturnValue(now);
    results.push(await check());
  }
  expect(reasons).toEqual([expect.stringContaining('http 401')]);
  expect(results).toEqual([[], [], reasons, reasons, [], []]);
  expect(getJob).toHaveBeenCalledTimes(3);
});

it('closes connections without a complete request after 5 s, checked every second, so that these connections can’t block the probes', async () => {
  const create = jest.spyOn(http, 'createServer');
  const listener = { host: '127.0.0.1', port: 0, isSetByOperator: true };
  const isReady = () => Promise.resolve([]);
  const server = await startHealthServer(listener, '1.2.3', isReady, new DefaultLogger('ERROR'));
  await server.close();
  const limits = { requestTimeout: 5_000, headersTimeout: 5_000, connectionsCheckingInterval: 1_000 };
  expect(create.mock.calls[0]?.[0]).toMatchObject(limits);
});

it.each([
  ['--help', false, /--version\.\n\nVariables:\n {2}AGENT_API_BASE_URL\n/],
  ['--version', false, /^1\.2\.3\n$/],
  ['--check-key', true, /^Runs the worker for follow-ups .*\n.*--help/],
])('the worker with the argument %s prints a text and does not start', (argument, isError, pattern) => {
  const output = expect.stringMatching(pattern);
  expect(handleArguments([argument], '1.2.3')).toEqual({ isError, output });
});
