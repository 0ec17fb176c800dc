import { describe, expect, it } from '@jest/globals';
import { bodyOf } from '../../src/agent-api/exchange';
import { serviceMessage } from '../../src/agent-api/trouble';

function wordsIn(body: string, redact = (text: string) => text) {
  return serviceMessage(bodyOf(body, redact));
}

describe('the service’s own words', () => {
  it.each([
    ['{"error":"prompt is too long"}', 'prompt is too long'],
    ['{"error":{"message":"no such job","code":7}}', 'no such job'],
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
    '{"error":7}',
    '{"error":"cut of',
    '<!DOCTYPE html><p>error',
    '\n<html>',
    'x'.repeat(1_025),
  ])('are none in %j', (body) => {
    expect(wordsIn(body)).toBeUndefined();
  });

  it('are at most 1 KiB', () => {
    expect(wordsIn(JSON.stringify({ error: 'x'.repeat(16_000) }))).toHaveLength(1_024);
  });

  it('hold no key, also where the bound would have cut it in two', () => {
    const body = JSON.stringify({ error: 'x'.repeat(1_020) + 'SECRET' });
    expect(wordsIn(body, (text) => text.replaceAll('SECRET', '*'))).toBe('x'.repeat(1_020) + '*');
  });
});

it('a body is read, and so redacted, only in the fields of a job and of an error, and a text of 16 KiB is left out', () => {
  const asked: string[] = [];
  const redact = (text: string) => {
    asked.push(text);
    return text;
  };
  const hostile = '\\u0041%41&amp;'.repeat(2_000);
  const error = { message: 'no', other: { error: hostile } };
  const body = JSON.stringify({ error, list: [hostile], x: hostile, detail: hostile });
  const value = { error: { message: 'no' }, detail: '' };
  expect(bodyOf(body, redact)).toEqual({ kind: 'json', value });
  expect(asked).toEqual(['no']);
});
