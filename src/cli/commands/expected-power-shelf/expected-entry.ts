const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** People name an entry of the expected inventory by its BMC's MAC address or by its id. */
export const nameEntry = (
  macOrId: string,
): { readonly expectedPowerShelfId: { readonly value: string } } | { readonly bmcMacAddress: string } =>
  UUID.test(macOrId) ? { expectedPowerShelfId: { value: macOrId } } : { bmcMacAddress: macOrId };
