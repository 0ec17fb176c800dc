import http from 'node:http';
import { expect, it, jest } from '@jest/globals';
import { DefaultLogger } from '@temporalio/worker';
import type { JobAnswer } from '../../src/core/activities';
import { commandLine } from '../../src/worker/command-line';
import { keyCheck, startHealthServer } from '../../src/worker/health';
import { AGENT_API } from '../harness/samples';

const trouble = (httpStatus: number): JobAnswer => {
  const label = `http ${httpStatus}`;
  return { kind: 'trouble', label, message: label, httpStatus };
};

it('asks once a minute until the service has taken the key, and a service that is down has not', async () => {
  const answers = [503, 401, 404].map(trouble);
  const getJob = jest.fn(() => Promise.resolve(answers.shift() ?? trouble(401)));
  const reasons: string[] = [];
  const check = keyCheck({ ...AGENT_API, getJob }, { warn: (reason) => reasons.push(reason) });
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  expect(await check()).toEqual([]);
  expect(await check()).toEqual([]);
  expect(getJob).toHaveBeenCalledTimes(1);
  clock.mockReturnValue(61_000);
  expect(await check()).toEqual([expect.stringContaining('http 401')]);
  expect(await check()).toEqual(reasons);
  clock.mockReturnValue(122_000);
  expect(await check()).toEqual([]);
  clock.mockReturnValue(10_000_000);
  expect(await check()).toEqual([]);
  expect(getJob).toHaveBeenCalledTimes(3);
});

it('looks each second for connections that ask nothing, which would keep the probes out', async () => {
  const create = jest.spyOn(http, 'createServer');
  const listener = { host: '127.0.0.1', port: 0, chosen: true };
  const server = await startHealthServer(
    listener,
    '1.2.3',
    () => Promise.resolve([]),
    new DefaultLogger('ERROR'),
  );
  const { requestTimeout, headersTimeout, connectionsCheckingInterval } = create.mock.calls[0]?.[0] ?? {};
  create.mockRestore();
  await server.close();
  expect([requestTimeout, headersTimeout, connectionsCheckingInterval]).toEqual([5_000, 5_000, 1_000]);
});

it.each([
  ['--help', false, /^Works on follow-ups .*\n {2}AGENT_API_KEY_FILE\n.*--version\n$/s],
  ['--version', false, /^1\.2\.3\n$/],
  ['--check-key', true, /^error: the worker takes --help or --version; /],
])('the command line of the worker with %s starts nothing', (word, isError, words) => {
  const output = expect.stringMatching(words);
  expect(commandLine([word], '1.2.3')).toEqual({ isError, output });
});
