/** The part of the project's package.json that this file uses. */
interface Manifest {
  readonly repository?: { readonly type: string; readonly url: string };
}

/**
 * Returns the fields with which the package registry accepts a package with its provenance: the public repository of its source, and
 * the settings of `npm publish`. If the project's package.json has no `repository`, the function returns no fields, because a registry
 * accepts a provenance only for the repository that the package names.
 */
export function publishFields(manifest: object): object {
  const { repository } = manifest as Manifest;
  if (repository === undefined) return {};
  return { repository, publishConfig: { access: 'public', provenance: true } };
}
