import { isLocalPath, listAt, type Resource, textAt, valueAt } from "./resource.ts";

/**
 * Where to send an action, if the resource offers it with this value. Values that are not listed are not sent, since some BMCs
 * answer unknown ones with success; one that lists none at all is believed to know the usual.
 */
export function actionOffered(
  owner: Resource | undefined,
  action: string,
  parameter?: { readonly name: string; readonly value: string },
): string | undefined {
  const target = textAt(owner, "Actions", action, "target");
  if (target === undefined || !isLocalPath(target)) return undefined;
  if (parameter === undefined) return target;
  const allowed = valueAt(owner, "Actions", action, `${parameter.name}@Redfish.AllowableValues`);
  return allowed === undefined || listAt(allowed).includes(parameter.value) ? target : undefined;
}
