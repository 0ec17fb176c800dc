import { beforeAll, expect, it } from '@jest/globals';
import { MANIFESTS, readStored, storedNames } from './stored';
import { createSurface } from './surface';

let surface: Record<string, string>;

beforeAll(async () => {
  surface = await createSurface();
});

it.each(storedNames().filter((name) => name !== MANIFESTS))(
  'the public surface equals test/public-surface/stored/%s; if the change is allowed (docs/versioning.md), run npm run public-surface',
  (name) => {
    expect(surface[name]).toBe(readStored(name));
  },
);

it('each file of the public surface has a stored copy', () => {
  expect([...Object.keys(surface), MANIFESTS].sort()).toEqual(storedNames());
});
