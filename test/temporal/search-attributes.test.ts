import timers from 'node:timers/promises';
import { afterEach, expect, it, jest } from '@jest/globals';
import { type ConnectionLike, ServiceError } from '@temporalio/client';
import { SEARCH_ATTRIBUTE_TYPES } from '../../src/contract/names';
import { prepareSearchAttributes } from '../../src/temporal/search-attributes';

const rejection = (code: number) => () => {
  const cause = Object.assign(new Error('no'), { code, details: 'no', metadata: {} });
  return Promise.reject(new ServiceError('no', { cause }));
};
const UNAVAILABLE = rejection(14);
const PERMISSION_DENIED = rejection(7);
const INVALID_ARGUMENT = rejection(3);

const KEYWORD = 2;
const KEYWORD_LIST = 7;
const ALL = Object.fromEntries(
  Object.entries(SEARCH_ATTRIBUTE_TYPES).map(([name, type]) => [
    name,
    type === 'Keyword' ? KEYWORD : KEYWORD_LIST,
  ]),
);

/** A connection whose operator service lists the attributes that were added. Each list and query uses the next response first. */
function connectionWith(responses: (() => Promise<never>)[]) {
  let customAttributes: object = {};
  const respond = (value: () => object) => jest.fn(() => responses.shift()?.() ?? Promise.resolve(value()));
  const listSearchAttributes = respond(() => ({ customAttributes }));
  const addSearchAttributes = jest.fn(() => Promise.resolve((customAttributes = ALL)));
  const connection = {
    withDeadline: (_: number, call: () => unknown) => call(),
    operatorService: { listSearchAttributes, addSearchAttributes },
    workflowService: { listWorkflowExecutions: respond(() => ({})) },
  } as unknown as ConnectionLike;
  return { connection, addSearchAttributes, listSearchAttributes };
}

function prepare(connection: ConnectionLike, stop = new AbortController().signal) {
  const logger = { info: jest.fn(), warn: jest.fn() };
  return { logger, prepared: prepareSearchAttributes(connection, 'default', logger, stop) };
}

/** Ends the waits at once. The wait after the given number of waits never ends. @returns the lengths of the waits */
function limitWaits(count: number): number[] {
  const waits: number[] = [];
  jest.spyOn(timers, 'setTimeout').mockImplementation((ms) => {
    waits.push(ms ?? 0);
    return waits.length > count ? new Promise(() => undefined) : Promise.resolve(undefined as never);
  });
  return waits;
}

afterEach(() => {
  jest.restoreAllMocks();
});

it('a worker that starts while the Temporal server is not available registers the search attributes later', async () => {
  const waits = limitWaits(2);
  const { connection, addSearchAttributes } = connectionWith(Array<typeof UNAVAILABLE>(4).fill(UNAVAILABLE));
  const { logger, prepared } = prepare(connection);
  const registered = new Promise((resolve) => logger.info.mockImplementation(resolve));
  await prepared;
  expect(addSearchAttributes).not.toHaveBeenCalled();
  expect(logger.warn).toHaveBeenCalledWith(expect.stringMatching(/^the worker starts without a check/));
  expect(await registered).toMatch(/^search attributes registered: FollowUpPhase, /);
  expect(logger.warn).toHaveBeenCalledTimes(1);
  expect(waits).toEqual([60_000, 60_000]);
});

it('a worker whose gateway rejects both calls with PERMISSION_DENIED does not repeat them', async () => {
  const waits = limitWaits(0);
  const { connection } = connectionWith([PERMISSION_DENIED, PERMISSION_DENIED]);
  const { logger, prepared } = prepare(connection);
  await prepared;
  expect(logger.warn).toHaveBeenCalledTimes(1);
  expect(waits).toEqual([]);
});

it('the repetition ends with the worker', async () => {
  jest.spyOn(timers, 'setTimeout').mockResolvedValue(undefined);
  const { connection, listSearchAttributes } = connectionWith([UNAVAILABLE, UNAVAILABLE]);
  const { prepared } = prepare(connection, AbortSignal.abort());
  await prepared;
  await new Promise(setImmediate);
  expect(listSearchAttributes).toHaveBeenCalledTimes(1);
});

it('the registration waits until queries accept the attributes, if a gateway rejects their list and the server caches them for a minute', async () => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  jest.spyOn(timers, 'setTimeout').mockImplementation((ms) => Promise.resolve((now += ms ?? 0) as never));
  let addedAt = Infinity;
  const list = jest.fn(() => (now - addedAt >= 60_000 ? Promise.resolve({}) : INVALID_ARGUMENT()));
  const connection = {
    withDeadline: (_: number, call: () => unknown) => call(),
    operatorService: {
      listSearchAttributes: PERMISSION_DENIED,
      addSearchAttributes: () => Promise.resolve((addedAt = now)),
    },
    workflowService: { listWorkflowExecutions: list },
  } as unknown as ConnectionLike;
  const { logger, prepared } = prepare(connection);
  await prepared;
  expect(logger.info).toHaveBeenCalledTimes(1);
  expect(now).toBe(60_000);
});
