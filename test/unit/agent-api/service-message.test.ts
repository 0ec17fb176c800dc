import { describe, expect, it } from '@jest/globals';
import { bodyOf } from '../../../src/agent-api/exchange';
import { serviceMessage } from '../../../src/agent-api/trouble';

function wordsIn(body: string, redact = (text: string) => text) {
  return serviceMessage(bodyOf(body, redact));
}

describe('the service’s own words', () => {
  it.each([
    ['{"error":"prompt is too long"}', 'prompt is too long'],
    ['{"error":{"message":"no such job","code":7}}', 'no such job'],
    ['{"message":"no such job"}', 'no such job'],
    ['{"detail":"no such job"}', 'no such job'],
    ['"quota used up"', 'quota used up'],
    ['upstream connect error', 'upstream connect error'],
    ['{"error":"one\\r\\ntwo\\u0000\\u001b[31m\\u2028three\\u202e"}', 'one two [31m three'],
    ['{"error":"lone \\ud800 half"}', 'lone \ufffd half'],
  ])('of %s', (body, words) => {
    expect(wordsIn(body)).toBe(words);
  });

  it.each([
    '',
    ' \n ',
    '{}',
    '[]',
    'null',
    '7',
    '{"error":7}',
    '{"error":""}',
    '{"error":"cut of',
    '<!DOCTYPE html><p>error',
    '\n<html>',
    '<?xml version="1.0"?>',
    'x'.repeat(1_025),
  ])('are none in %j', (body) => {
    expect(wordsIn(body)).toBeUndefined();
  });

  it('are at most 1 KiB', () => {
    expect(wordsIn(JSON.stringify({ error: 'x'.repeat(90_000) }))).toHaveLength(1_024);
  });

  it('hold no key, also where the bound would have cut it in two', () => {
    const body = JSON.stringify({ error: 'x'.repeat(1_020) + 'SECRET' });
    expect(wordsIn(body, (text) => text.replaceAll('SECRET', '*'))).toBe('x'.repeat(1_020) + '*');
  });
});

describe('a body', () => {
  it.each(['<html>', '  <!doctype html>', '<P>x'])('is HTML: %j', (body) => {
    expect(bodyOf(body, String)).toEqual({ kind: 'html' });
  });

  it.each(['', '< 5', 'x <html>'])('is a text: %j', (body) => {
    expect(bodyOf(body, String)).toEqual({ kind: 'text', text: body });
  });
});
