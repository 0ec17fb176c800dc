import { expect, it, jest } from '@jest/globals';
import type { JobAnswer } from '../../src/core/wire';
import { keyCheck } from '../../src/worker/health';
import { AGENT_API } from '../harness/samples';

const trouble = (httpStatus: number): JobAnswer => ({
  kind: 'trouble',
  label: `http ${httpStatus}`,
  message: `http ${httpStatus}`,
  httpStatus,
});

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
