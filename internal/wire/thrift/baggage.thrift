// Which baggage clients may set. Only the JSON form of these types was meant to travel, over HTTP.

// BaggageRestriction allows a key, with values up to a length in bytes.
struct BaggageRestriction {
  1: required string baggageKey
  2: required i32    maxValueLength
}

// BaggageRestrictionManager knows the keys that a service may set.
service BaggageRestrictionManager {
  list<BaggageRestriction> getBaggageRestrictions(1: string serviceName)
}
