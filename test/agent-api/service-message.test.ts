import { describe, expect, it } from '@jest/globals';
import { bodyOf } from '../../src/agent-api/exchange';
import { Redactor } from '../../src/agent-api/redaction';
import { serviceMessage } from '../../src/agent-api/trouble';

function wordsIn(body: string, redact: (text: string) => string = String) {
  return serviceMessage(bodyOf(body, { text: redact, field: String }));
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

  it('of an error of 200 KB are its beginning', () => {
    const words = wordsIn(JSON.stringify({ error: 'Too many links. '.repeat(13_000) }));
    expect(words).toHaveLength(1_024);
    expect(words).toMatch(/^(Too many links\. )+Too.*…$/);
  });

  // Proves K3.
  it('hold no part of a key that the bound before the redaction has cut, however short the rest becomes', () => {
    const key = 'agnt_9f8e7d6c5b4a39281706f5e4d3c2b1a0';
    const redactor = new Redactor([key]);
    const spelled = key.replace(/./g, (c) => `%${c.charCodeAt(0).toString(16)}`);
    const error = `${spelled} `.repeat(2_000);
    expect(redactor.text(error.slice(0, 16_384))).toMatch(/^(\[key\] ){146}agnt_9f8e/);
    expect(wordsIn(JSON.stringify({ error }), redactor.text) ?? '').not.toMatch(/agnt|9f8e/);
  });

  it('hold no key, also where the bound would have cut it in two', () => {
    const body = JSON.stringify({ error: 'x'.repeat(1_020) + 'SECRET' });
    expect(wordsIn(body, (text) => text.replaceAll('SECRET', '*'))).toBe('x'.repeat(1_020) + '*');
  });
});

it('a body is read, and so redacted, only in the fields of a job and of an error, and of 16 KiB of a text', () => {
  const asked: string[] = [];
  const redact = (text: string) => {
    asked.push(text);
    return text;
  };
  const hostile = '\\u0041%41&amp;'.repeat(2_000);
  const error = { message: 'no', other: { error: hostile } };
  const body = JSON.stringify({ error, list: [hostile], x: hostile, detail: hostile });
  const job = JSON.stringify({ id: 'j', model: hostile });
  const value = { error: { message: 'no' }, detail: hostile.slice(0, 8_192) };
  expect(bodyOf(body, { text: redact, field: redact })).toEqual({ kind: 'json', value });
  expect(bodyOf(job, { text: redact, field: redact })).toEqual({
    kind: 'json',
    value: { id: 'j', model: '' },
  });
  expect(asked).toEqual(['no', hostile.slice(0, 16_384), 'j']);
});
