import { expect, it } from '@jest/globals';
import manifest from '../../package.json';
import { publishFields } from '../../tools/lib/publish-fields';

it('a package names its repository and requires provenance only if package.json has a repository', () => {
  const repository = { type: 'git', url: 'git+https://git.example/team/agent-follow-up.git' };
  const publishConfig = { access: 'public', provenance: true };
  expect(publishFields({ ...manifest, repository })).toEqual({ repository, publishConfig });
  expect(publishFields({})).toEqual({});
});
