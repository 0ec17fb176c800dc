import { describe, expect, it } from '@jest/globals';
import { isHtml, serviceMessage } from '../../../src/agent-api/trouble';

const asIs = (text: string) => text;

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
    expect(serviceMessage(body, asIs)).toBe(words);
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
    expect(serviceMessage(body, asIs)).toBeUndefined();
  });

  it('are at most 1 KiB', () => {
    expect(serviceMessage(JSON.stringify({ error: 'x'.repeat(90_000) }), asIs)).toHaveLength(1_024);
  });

  it('hold no key, also where the bound would have cut it in two', () => {
    const body = JSON.stringify({ error: 'x'.repeat(1_020) + 'SECRET' });
    expect(serviceMessage(body, (text) => text.replaceAll('SECRET', '*'))).toBe('x'.repeat(1_020) + '*');
  });
});

describe('isHtml', () => {
  it.each(['<html>', '  <!doctype html>', '<P>x'])('%j', (body) => {
    expect(isHtml(body)).toBe(true);
  });

  it.each(['', '{"a":"<b>"}', '< 5', 'x <html>'])('not %j', (body) => {
    expect(isHtml(body)).toBe(false);
  });
});
