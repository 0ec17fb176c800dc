import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Dispatcher } from 'undici';
import { exchange } from '../../src/agent-api/exchange';

const REQUEST = { origin: 'http://agents', method: 'POST', path: '/', body: '{}' } as const;

/** Stands in for undici's connection, to reach the moments that no server can bring about at will. */
class ScriptedDispatcher extends Dispatcher {
  handler: Dispatcher.DispatchHandler | undefined;

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.handler = handler;
    return true;
  }

  /** What undici does right before it writes; false when the request was aborted, and so is not written. */
  startRequest(): boolean {
    const abort = jest.fn();
    const controller = { abort } as unknown as Dispatcher.DispatchController;
    this.handler?.onRequestStart?.(controller, {});
    return abort.mock.calls.length === 0;
  }
}

function begin(limits: { timeoutMs: number; connectTimeoutMs: number; beforeFirstByte?: () => undefined }) {
  const dispatcher = new ScriptedDispatcher();
  return { dispatcher, result: exchange(dispatcher, REQUEST, limits, { text: String, field: String }) };
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

it('an exchange that was given up while connecting is not written once the connection is made', async () => {
  const beforeFirstByte = jest.fn(() => undefined);
  const { dispatcher, result } = begin({ timeoutMs: 500, connectTimeoutMs: 5, beforeFirstByte });
  jest.advanceTimersByTime(5);
  const message = 'connect timeout: no connection to http://agents within 5ms';
  const brokenBy = { label: 'connect timeout', message };
  expect(await result).toEqual({ kind: 'no answer', started: false, brokenBy });
  expect(dispatcher.startRequest()).toBe(false);
  expect(beforeFirstByte).not.toHaveBeenCalled();
});

// Proves A2.
it('an exchange whose request is started again on another connection is not written a second time', async () => {
  const { dispatcher, result } = begin({ timeoutMs: 500, connectTimeoutMs: 100 });
  expect(dispatcher.startRequest()).toBe(true);
  expect(dispatcher.startRequest()).toBe(false);
  // The second connection was refused: that says nothing of what became of the first.
  const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  dispatcher.handler?.onResponseError?.({} as Dispatcher.DispatchController, error);
  const brokenBy = { label: 'ECONNREFUSED', message: 'ECONNREFUSED: connect' };
  expect(await result).toEqual({ kind: 'no answer', started: true, brokenBy });
});
