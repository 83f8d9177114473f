import { createCertificate } from "../../../simulator/certificate/certificate.ts";

/** Of kim, signed by itself, and made anew in each process. */
export const { cert: CERTIFICATE, key: KEY } = createCertificate({
  addresses: ["127.0.0.1"],
  now: new Date(),
  commonName: "kim",
});
