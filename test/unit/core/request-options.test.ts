import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { checkRequest } from '../../../src/core/check-request';
import { REQUEST_FIELDS, REQUEST_OPTIONS, type RequestOption } from '../../../src/core/request-options';

describe('the table of request fields', () => {
  it('has every field that the checker knows, and no other', () => {
    const checked = checkRequest({ unknown: 1, polling: { unknown: 1 } }, 'any-id');
    const known = (checked.ok ? [] : checked.problems)
      .filter(({ text }) => text.includes('is not a field here'))
      .map(({ text }) => /the fields are (.*)$/.exec(text)?.[1]?.split(', ') ?? []);
    const [polling = [], request = []] = known;
    const names = [
      ...request.filter((name) => name !== 'polling'),
      ...polling.map((name) => `polling.${name}`),
    ];

    expect(names.sort()).toEqual(Object.keys(REQUEST_FIELDS).sort());
  });

  it.each(Object.entries<RequestOption>(REQUEST_OPTIONS))(
    'and the documentation of the type have the same default for %s',
    (field, option) => {
      const source = readFileSync(path.join(__dirname, '../../../src/core/request.ts'), 'utf8');
      const types = source.slice(
        source.indexOf('interface FollowUpRequest'),
        source.indexOf('interface FollowUpPlan'),
      );
      const name = field.replace('polling.', '');
      const documented = new RegExp(`@default ([^*]+?)\\s*\\*/\\s+readonly ${name}\\?:`).exec(types)?.[1];

      expect(documented?.replaceAll("'", '')).toBe(String(option.default));
    },
  );
});
