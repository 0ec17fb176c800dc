import { afterEach, expect, it, jest } from '@jest/globals';
import type { NativeConnection } from '@temporalio/worker';
import type { JobResponse } from '../../src/contract/activities';
import type { TemporalConfig } from '../../src/temporal/connection-config';
import { connectionCheck, keyCheck, runInBackground, runTogether } from '../../src/worker/readiness';
import { UNUSED_AGENT_API } from '../harness/fixtures';

afterEach(() => {
  jest.useRealTimers();
});

const failed = (label: string, httpStatus?: number): JobResponse => ({
  kind: 'failure',
  label,
  message: label,
  ...(httpStatus !== undefined && { httpStatus }),
});

/** Returns a function whose calls end when the test ends them, one after another. */
function pendingCalls<T>() {
  const pending: ((value: T) => void)[] = [];
  const call = jest.fn(() => new Promise<T>((resolve) => pending.push(resolve)));
  const end = async (value: T) => {
    pending.shift()?.(value);
    await jest.advanceTimersByTimeAsync(0);
  };
  return { call, end };
}

/** Calls a check while its facts are pending. @returns the reasons that it returns after half a second */
async function reasonsAfterHalfASecond(check: () => Promise<readonly string[]>) {
  let reasons: readonly string[] | undefined;
  void check().then((each) => (reasons = each));
  await jest.advanceTimersByTimeAsync(500);
  return reasons;
}

it('checks the key at most once a minute until the agent service accepts it, and stays ready while the agent service returns 503', async () => {
  const responses = [503, 401, 404].map((status) => failed(`http_${status}`, status));
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
  clock.mockRestore();
  expect(reasons).toEqual([expect.stringContaining('http_401')]);
  expect(results).toEqual([[], [], reasons, reasons, [], []]);
  expect(getJob).toHaveBeenCalledTimes(3);
});

it('while the agent service does not respond, the key check returns within half a second; the worker is not ready until the first check has ended, and is ready after its timeout of ten seconds', async () => {
  jest.useFakeTimers();
  const { call, end } = pendingCalls<JobResponse>();
  const warn = jest.fn();
  const check = keyCheck({ ...UNUSED_AGENT_API, timeoutMs: 60_000, getJob: call }, { warn });
  const unknown = ['the first check of the API key has not ended'];
  expect(await reasonsAfterHalfASecond(check)).toEqual(unknown);
  expect(await reasonsAfterHalfASecond(check)).toEqual(unknown);
  expect(call.mock.calls).toEqual([[expect.anything(), { timeoutMs: 10_000 }]]);
  await end(failed('timeout'));
  expect(await check()).toEqual([]);
  const advice = 'the agent service does not respond (timeout); if this continues, check AGENT_API_BASE_URL';
  expect(warn.mock.calls).toEqual([[advice]]);
});

it.each([
  ['has responded with status 503', failed('http_503', 503)],
  ['has responded with a body that cannot be decoded', { ...failed('bad_encoding'), gatewayStatus: 401 }],
  ['is not read any more, because the worker shuts down', failed('UND_ERR_DESTROYED')],
] as const)(
  'the key check does not report a missing response if the agent service %s',
  async (_, response) => {
    const warn = jest.fn();
    const getJob = () => Promise.resolve(response);
    await keyCheck({ ...UNUSED_AGENT_API, getJob }, { warn })();
    expect(warn).not.toHaveBeenCalled();
  },
);

it('if the agent service rejects the key slowly, the worker is never reported as ready', async () => {
  jest.useFakeTimers();
  const { call, end } = pendingCalls<JobResponse>();
  const check = keyCheck({ ...UNUSED_AGENT_API, getJob: call }, { warn: () => undefined });
  expect(await reasonsAfterHalfASecond(check)).toHaveLength(1);
  await end(failed('http_401', 401));
  expect(await check()).toEqual([expect.stringContaining('http_401')]);
  // The next check is made after a minute. Its result is not known yet, so the previous one counts.
  await jest.advanceTimersByTimeAsync(60_000);
  expect(await reasonsAfterHalfASecond(check)).toEqual([expect.stringContaining('http_401')]);
  expect(call).toHaveBeenCalledTimes(2);
});

it('while the Temporal server does not respond, its check returns the last result within half a second, and reports the failure afterwards', async () => {
  jest.useFakeTimers();
  const { call, end } = pendingCalls<Error | null>();
  const describeNamespace = async () => {
    const error = await call();
    if (error !== null) throw error;
  };
  const connection = {
    withDeadline: (_: number, request: () => Promise<void>) => request(),
    workflowService: { describeNamespace },
  } as unknown as NativeConnection;
  const temporal = { address: 'temporal.example:7233', namespace: 'n' } as TemporalConfig;
  const check = connectionCheck(connection, temporal);
  expect(await reasonsAfterHalfASecond(check)).toEqual([]);
  await end(new Error('no route'));
  const unreachable = [expect.stringContaining("Can't reach the Temporal server at temporal.example:7233")];
  expect(await check()).toEqual(unreachable);
  await jest.advanceTimersByTimeAsync(2_000);
  expect(await reasonsAfterHalfASecond(check)).toEqual(unreachable);
  await end(null);
  expect(await check()).toEqual([]);
});

it('two checks whose facts do not arrive return within half a second together', async () => {
  jest.useFakeTimers();
  const pending = (reason: string) =>
    runInBackground(pendingCalls<string[]>().call, { intervalMs: 60_000, initialReasons: [reason] });
  const check = runTogether(pending('the first'), () => Promise.resolve([]), pending('the second'));
  const reasons: string[][] = [];
  void check().then((each) => reasons.push([...each]));
  await jest.advanceTimersByTimeAsync(500);
  expect(reasons).toEqual([['the first', 'the second']]);
});

it('starts one check at a time, however many probes arrive, and reports a check that fails', async () => {
  const fail = jest.fn(() => Promise.reject(new Error('a bug')));
  const check = runInBackground(fail, { intervalMs: 60_000, initialReasons: [] });
  const results = await Promise.all([check(), check(), check()]);
  expect(new Set(results.flat())).toEqual(new Set(['a readiness check failed: Error: a bug']));
  expect(fail).toHaveBeenCalledTimes(1);
});
