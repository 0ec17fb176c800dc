import { describe, expect, it } from '@jest/globals';
import { Redactor } from '../../src/agent-api/redaction';
import { seededRandom } from '../../sandbox/random';

const redact = (text: string, secrets: readonly string[]) => new Redactor(secrets).text(text);

type Spelling = (text: string) => string;

const hex = (character: string, digits = 2) => character.charCodeAt(0).toString(16).padStart(digits, '0');
const each = (text: string, spell: (character: string) => string) => text.replace(/[ -~]/g, spell);
const special = (text: string, spell: (character: string) => string) =>
  text.replace(/[ -/:-@[-`{-~]/g, spell);
const NAMES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '+': '&plus;',
  '/': '&sol;',
  '=': '&equals;',
};

/** How services, gateways and their logs write a text. */
const SPELLINGS: Readonly<Record<string, Spelling>> = {
  'as JSON': (text) => JSON.stringify(text).slice(1, -1),
  'as JSON with \\/': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'as JSON with \\u002B': (text) => special(text, (c) => `\\u${hex(c, 4).toUpperCase()}`),
  'as JSON with \\u002b for every character': (text) => each(text, (c) => `\\u${hex(c, 4)}`),
  'as JavaScript with \\x2b': (text) => special(text, (c) => `\\x${hex(c)}`),
  'in a URL': encodeURIComponent,
  'in a URL, in lower case': (text) => special(text, (c) => `%${hex(c)}`),
  'in a URL, every character': (text) => each(text, (c) => `%${hex(c)}`),
  'in a form': (text) => new URLSearchParams({ k: text }).toString().slice(2),
  'in HTML with names': (text) => special(text, (c) => NAMES[c] ?? c),
  'in HTML with numbers': (text) => special(text, (c) => `&#${c.charCodeAt(0)};`),
  'in HTML with hexadecimal numbers': (text) => special(text, (c) => `&#X00${hex(c)};`),
  'in HTML with numbers without semicolons': (text) => special(text, (c) => `&#${c.charCodeAt(0)}`),
  'in HTML with hexadecimal numbers without semicolons': (text) => special(text, (c) => `&#x${hex(c)}`),
  'in a URL by IIS': (text) => special(text, (c) => `%u${hex(c, 4)}`),
  'as JavaScript with \\u{2b}': (text) => special(text, (c) => `\\u{${hex(c)}}`),
  'in a mail, quoted-printable': (text) => special(text, (c) => `=${hex(c).toUpperCase()}`),
  'with invisible characters between': (text) => each(text, (c) => `${c}\u200b\u2060`),
};

/** What is left of `text` around the keys. Backslashes of an escape and base64's padding may stay beside the key. */
function around(text: string, key: string): string {
  return redact(`bad ${text}", retry`, [key]).replaceAll(/\\|=|%3D/g, '');
}
const HIDDEN = 'bad [key]", retry';

describe('redact', () => {
  const key = 'agnt_a/b+c=d&e"f\\g%2Fh';

  it.each([
    ['in base64url', Buffer.from(key).toString('base64url')],
    ['in the base64 of its header', Buffer.from(`Bearer ${key}`).toString('base64')],
    ['in base64 in a URL', encodeURIComponent(Buffer.from(key).toString('base64'))],
    ['in a mail, with a soft line break', `${key.slice(0, 9)}=\r\n${key.slice(9)}`],
    ['with escaped invisible characters', each(key, (c) => `${c}%E2%80%8B\\u200b&#8203;`)],
    ['whose + became a space', key.replaceAll('+', ' ')],
  ])('hides a key %s', (_name, text) => {
    expect(around(text, key)).toBe(HIDDEN);
  });

  // Proves K3.
  it('hides every key in every spelling, one in the other, and any mixture of them, and leaves the rest alone', () => {
    const random = seededRandom(20);
    const below = (limit: number) => Math.floor(random() * limit);
    const oneOf = <T>(list: readonly T[]) => list[below(list.length)] as T;
    for (let round = 0; round < 3_000; round += 1) {
      const characters = Array.from({ length: 6 + below(60) }, () => String.fromCharCode(0x21 + below(0x5e)));
      // Of a backslash at its edge something may be left, which shows nothing.
      const secret = `k${characters.join('')}y`;
      // Nobody can tell whether a semicolon after a number belongs to it.
      const spellings = Object.entries(SPELLINGS).filter(
        ([name]) => !secret.includes(';') || !name.includes('without'),
      );
      const outer = Array.from({ length: below(3) }, () => oneOf(spellings));
      // Of a mixture, each character is spelled by itself.
      const inner =
        random() < 0.5 ? each(secret, (c) => oneOf(spellings)[1](c)) : oneOf(spellings)[1](secret);
      const spelled = outer.reduce((text, [, spell]) => spell(text), inner);
      const names = outer.map(([name]) => name).join(', ');
      expect({ secret, names, spelled, around: around(spelled, secret) }).toMatchObject({ around: HIDDEN });
    }
  });

  // Proves K3.
  it('hides what follows the prefix of a key, also without it', () => {
    const body = 'kX7p/q+Rz9w2';
    const shown = `${body} ${encodeURIComponent(body)} ${Buffer.from(body).toString('base64')} agnt_${body}`;
    expect(redact(`the key ${shown} may not write`, [`agnt_${body}`])).toBe(
      'the key [key] [key] [key] [key] may not write',
    );
    // Not every key has a prefix: its beginning is hidden too, in any spelling.
    expect(redact('in%2Fthe_beginning', ['in/the_beginning'])).toBe('[key]');
  });

  it('hides what follows Bearer in a message, and not in a field', () => {
    const redactor = new Redactor();
    expect(redactor.text('Bearer of-somebody')).toBe('Bearer [redacted]');
    expect(redactor.field('Bearer of-somebody')).toBe('Bearer of-somebody');
  });

  it('hides the longer of two keys whole', () => {
    expect(redact('abc-def-ghi-jkl abc-def-ghi', ['abc-def-ghi', 'abc-def-ghi-jkl'])).toBe('[key] [key]');
  });

  it('leaves a text alone where there is no key', () => {
    const texts = ['nothing here', '100 % of \\n &amp; &nope; + %zz', '\\', '%', '&'];
    expect(texts.map((text) => redact(text, ['', 'agnt_xyz']))).toEqual(texts);
  });

  it.each(['\\/', '25', 'amp;', key.slice(0, -1)])(
    'reads a text of %j again and again in time that grows with its length',
    (piece) => {
      const text = `%&${piece.repeat(Math.ceil(1_048_576 / piece.length))}`;
      // Of the processor's time: others may use it, too.
      const took = (length: number) => {
        const startedAt = process.cpuUsage();
        redact(text.slice(0, length), [key]);
        return process.cpuUsage(startedAt).user / 1_000;
      };
      took(65_536);
      // Quadratic work would take 256 times as long.
      expect(took(1_048_576)).toBeLessThan(100 * took(65_536) + 1_000);
    },
  );
});
