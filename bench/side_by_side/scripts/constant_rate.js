// k6: RATE calls per second, whatever the server does.
import http from "k6/http";

export const options = {
  discardResponseBodies: true,
  scenarios: {
    rate: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE),
      timeUnit: "1s",
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: 50,
      maxVUs: 200,
    },
  },
};

export default function () {
  http.get(__ENV.URL);
}
