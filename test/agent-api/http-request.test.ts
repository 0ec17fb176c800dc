import { deflateSync, gzipSync } from 'node:zlib';
import { expect, it, jest } from '@jest/globals';
import type { Dispatcher } from 'undici';
import { sendHttpRequest } from '../../src/agent-api/http-request';

const REQUEST = { origin: 'http://agents', method: 'POST', path: '/', body: '{}' } as const;

/** Starts a request whose undici events the test calls, because no server can cause these events at an exact moment. */
function begin(
  limits: Parameters<typeof sendHttpRequest>[2],
  redact: Parameters<typeof sendHttpRequest>[3] = String,
) {
  let handler: Dispatcher.DispatchHandler = {};
  const dispatch = (_: unknown, given: Dispatcher.DispatchHandler) => Boolean((handler = given));
  const abort = jest.fn();
  const controller = { abort } as unknown as Dispatcher.DispatchController;
  return {
    result: sendHttpRequest({ dispatch } as unknown as Dispatcher, REQUEST, limits, redact),
    /** Reports that undici is about to write the request. Returns false if the request was aborted, so that nothing is written. */
    startRequest: () => {
      abort.mockClear();
      handler.onRequestStart?.(controller, {});
      return abort.mock.calls.length === 0;
    },
    abort,
    startResponse: (status: number, headers = {}) =>
      handler.onResponseStart?.(controller, status, headers, 'Whatever'),
    receive: (body: string | Buffer) => handler.onResponseData?.(controller, Buffer.from(body)),
    endResponse: () => handler.onResponseEnd?.(controller, {}),
    fail: (error: Error) => handler.onResponseError?.(controller, error),
  };
}

it('a request that timed out while it was connecting is not written after the connection is established', async () => {
  const beforeFirstByte = jest.fn(() => undefined);
  const { result, startRequest } = begin({ timeoutMs: 60_000, connectTimeoutMs: 1, beforeFirstByte });
  const failure = expect.objectContaining({ label: 'connect_timeout' });
  expect(await result).toEqual({ kind: 'no response', started: false, failure });
  expect(startRequest()).toBe(false);
  expect(beforeFirstByte).not.toHaveBeenCalled();
});

// Proves A2.
it('a request that undici starts again on another connection is not written a second time, and its result is still "started"', async () => {
  const { result, startRequest, fail } = begin({ timeoutMs: 60_000, connectTimeoutMs: 60_000 });
  expect([startRequest(), startRequest()]).toEqual([true, false]);
  // The second connection was refused, but the first connection may have sent the request.
  fail(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
  const failure = { label: 'ECONNREFUSED', message: 'ECONNREFUSED: connect' };
  expect(await result).toEqual({ kind: 'no response', started: true, failure });
});

const LIMITS = { timeoutMs: 60_000, connectTimeoutMs: 60_000 };

// Proves A2.
it('a response is returned even if closing its connection throws or reports an error', async () => {
  const { result, abort, startRequest, startResponse, receive, endResponse, fail } = begin(LIMITS);
  startRequest();
  startResponse(200);
  receive('{"id":"j"}');
  abort.mockImplementation(() => {
    throw new Error('close failed');
  });
  expect(endResponse).not.toThrow();
  fail(new Error('close failed'));
  const value = expect.objectContaining({ id: 'j' });
  expect(await result).toMatchObject({ kind: 'response', status: 200, body: { value }, failure: null });
});

// Proves A2.
it('a response whose headers and body cannot be read keeps its status', async () => {
  const fail = () => {
    throw new Error('a bug');
  };
  const { result, startRequest, startResponse, receive, endResponse } = begin(LIMITS, fail);
  startRequest();
  startResponse(404, { 'retry-after': '1' });
  receive('{"error":"no"}');
  endResponse();
  const failure = { label: 'unreadable', message: 'the response could not be read' };
  const body = { isHtml: false };
  expect(await result).toMatchObject({ kind: 'response', status: 404, body, failure });
});

it('the failure of a body with two encodings in two headers names both', async () => {
  const { result, startRequest, startResponse, receive, endResponse } = begin(LIMITS);
  startRequest();
  startResponse(200, { 'content-encoding': ['deflate', 'gzip'] });
  receive(gzipSync(deflateSync('{"id":"j"}')));
  endResponse();
  expect(await result).toMatchObject({ failure: { message: expect.stringContaining('deflate,gzip') } });
});
