import { expect, it, jest } from '@jest/globals';
import type { Dispatcher } from 'undici';
import { exchange } from '../../src/agent-api/exchange';

const REQUEST = { origin: 'http://agents', method: 'POST', path: '/', body: '{}' } as const;

/** What undici does with an exchange, at the moments that no server can bring about at will. */
function begin(limits: Parameters<typeof exchange>[2]) {
  let handler: Dispatcher.DispatchHandler = {};
  const dispatch = (_: unknown, given: Dispatcher.DispatchHandler) => Boolean((handler = given));
  const abort = jest.fn();
  const controller = { abort } as unknown as Dispatcher.DispatchController;
  const redact = { text: String, field: String };
  return {
    result: exchange({ dispatch } as unknown as Dispatcher, REQUEST, limits, redact),
    /** Right before it writes; false when the request was aborted, and so is not written. */
    startRequest: () => {
      abort.mockClear();
      handler.onRequestStart?.(controller, {});
      return abort.mock.calls.length === 0;
    },
    fail: (error: Error) => handler.onResponseError?.(controller, error),
  };
}

it('an exchange that was given up while connecting is not written once the connection is made', async () => {
  const beforeFirstByte = jest.fn(() => undefined);
  const { result, startRequest } = begin({ timeoutMs: 60_000, connectTimeoutMs: 1, beforeFirstByte });
  const brokenBy = expect.objectContaining({ label: 'connect timeout' });
  expect(await result).toEqual({ kind: 'no answer', started: false, brokenBy });
  expect(startRequest()).toBe(false);
  expect(beforeFirstByte).not.toHaveBeenCalled();
});

// Proves A2.
it('an exchange whose request is started again on another connection is not written a second time', async () => {
  const { result, startRequest, fail } = begin({ timeoutMs: 60_000, connectTimeoutMs: 60_000 });
  expect([startRequest(), startRequest()]).toEqual([true, false]);
  // The second connection was refused: that says nothing of what became of the first.
  fail(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
  const brokenBy = { label: 'ECONNREFUSED', message: 'ECONNREFUSED: connect' };
  expect(await result).toEqual({ kind: 'no answer', started: true, brokenBy });
});
