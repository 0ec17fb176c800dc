import { expect, it, jest } from '@jest/globals';
import { analyse } from 'scslre';
import { Redactor } from '../../src/agent-api/redaction';
import { seededRandom } from '../../sandbox/random';

const redact = (text: string, secrets: readonly string[]) => new Redactor(secrets).text(text);

type Spelling = (text: string) => string;

const each = (text: string, spell: (character: string) => string) => text.replace(/[ -~]/g, spell);
const special = (text: string, spell: (character: string) => string) =>
  text.replace(/[ -/:-@[-`{-~]/g, spell);
/** With the code of each special character between two texts. */
const coded =
  (before: string, radix: 10 | 16, digits = 0, after = ''): Spelling =>
  (text) =>
    special(text, (c) => before + c.charCodeAt(0).toString(radix).padStart(digits, '0') + after);
const NAMES = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos', '+': 'plus', '/': 'sol' };

/** How services, gateways and their logs write a text. */
const SPELLINGS: Readonly<Record<string, Spelling>> = {
  'as JSON with \\/': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'as JSON': coded('\\u', 16, 4),
  'as JavaScript': coded('\\x', 16, 2),
  'as JavaScript with braces': coded('\\u{', 16, 0, '}'),
  'in a URL': encodeURIComponent,
  'in a URL, every character': (text) => each(text, (c) => `%${Buffer.from(c).toString('hex')}`),
  'in a URL by IIS': coded('%u', 16, 4),
  'in a form': (text) => new URLSearchParams({ k: text }).toString().slice(2),
  'in HTML with names': (text) =>
    special(text, (c) => (c in NAMES ? `&${NAMES[c as keyof typeof NAMES]};` : c)),
  'in HTML with numbers': coded('&#', 10, 0, ';'),
  'in HTML with hexadecimal numbers': coded('&#X00', 16, 0, ';'),
  'in HTML with numbers without semicolons': coded('&#', 10),
  'in HTML with hexadecimal numbers without semicolons': coded('&#x', 16),
  'in a mail, quoted-printable': coded('=', 16, 2),
  'with invisible characters between': (text) => each(text, (c) => `${c}\u200b\u2060`),
};

/** What is left of `text` around the keys. Backslashes of an escape and base64's padding may stay beside the key. */
function around(text: string, key: string): string {
  return redact(`bad ${text}", retry`, [key]).replaceAll(/\\|=|%3D/g, '');
}
const HIDDEN = 'bad [key]", retry';

const key = 'agnt_a/b+c=d&e"f\\g%2Fh';

it.each([
  ['in base64url', Buffer.from(key).toString('base64url')],
  ['in the base64 of its header', Buffer.from(`Bearer ${key}`).toString('base64')],
  ['in base64 in a URL', encodeURIComponent(Buffer.from(key).toString('base64'))],
  ['in a mail, with a soft line break', `${key.slice(0, 9)}=\r\n${key.slice(9)}`],
  ['with escaped invisible characters', each(key, (c) => `${c}%E2%80%8B\\u200b&#8203;`)],
  ['whose + became a space', key.replaceAll('+', ' ')],
])('redaction hides a key %s', (_name, text) => {
  expect(around(text, key)).toBe(HIDDEN);
});

// Proves K3.
it('redaction hides every key in every spelling, one in the other, and any mixture of them, and leaves the rest alone', () => {
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
    const inner = random() < 0.5 ? each(secret, (c) => oneOf(spellings)[1](c)) : oneOf(spellings)[1](secret);
    const spelled = outer.reduce((text, [, spell]) => spell(text), inner);
    const names = outer.map(([name]) => name).join(', ');
    expect({ secret, names, spelled, around: around(spelled, secret) }).toMatchObject({ around: HIDDEN });
  }
});

// Proves K3.
it('redaction hides what follows the prefix of a key, also without it', () => {
  const body = 'kX7p/q+Rz9w2';
  const shown = `${body} ${encodeURIComponent(body)} ${Buffer.from(body).toString('base64')} agnt_${body}`;
  expect(redact(`the key ${shown} may not write`, [`agnt_${body}`])).toBe(
    'the key [key] [key] [key] [key] may not write',
  );
  // Not every key has a prefix: its beginning is hidden too, in any spelling.
  expect(redact('in%2Fthe_beginning', ['in/the_beginning'])).toBe('[key]');
});

it('redaction hides the longer of two keys whole, a key after its rotation, what follows Bearer in a message, and nothing else', () => {
  const redactor = new Redactor();
  for (const each of ['the-first-key', 'the-second-key']) redactor.remember(each);
  expect(redactor.text('the-first-key the-second-key')).toBe('[key] [key]');
  expect(redactor.text('Bearer of-somebody')).toBe('Bearer [redacted]');
  expect(redactor.field('Bearer of-somebody')).toBe('Bearer of-somebody');
  expect(redact('abc-def-ghi-jkl abc-def-ghi', ['abc-def-ghi', 'abc-def-ghi-jkl'])).toBe('[key] [key]');
  for (const text of ['nothing here', '100 % of \\n &amp; &nope; + %zz', '\\', '%', '&'])
    expect(redact(text, ['', 'agnt_xyz'])).toBe(text);
});

it('redaction reads a text in time that grows with its length: by patterns that do, as often for any length', () => {
  const redactor = new Redactor([key]);
  const used = jest.spyOn(RegExp.prototype as unknown as Record<symbol, () => unknown>, Symbol.replace);
  const patternsFor = (text: string) => {
    used.mockClear();
    redactor.text(text);
    return [...used.mock.contexts] as RegExp[];
  };
  for (const piece of ['\\/', '25', 'amp;', key.slice(0, -1)]) {
    const patterns = patternsFor(`%&${piece.repeat(100)}`);
    expect(patternsFor(`%&${piece.repeat(1_000)}`)).toEqual(patterns);
    for (const pattern of new Set(patterns)) expect(analyse(pattern).reports).toEqual([]);
  }
  used.mockRestore();
});
