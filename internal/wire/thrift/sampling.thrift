// How clients ask which traces to sample. Only the JSON form of these types travels, over HTTP.

// SamplingStrategyType says which strategy of a response counts where operationSampling is absent.
enum SamplingStrategyType {
  PROBABILISTIC = 0
  RATE_LIMITING = 1
}

// ProbabilisticSamplingStrategy samples traces at random.
struct ProbabilisticSamplingStrategy {
  // From 0 to 1.
  1: required double samplingRate
}

// RateLimitingSamplingStrategy samples traces up to a rate.
struct RateLimitingSamplingStrategy {
  1: required i16 maxTracesPerSecond
}

// OperationSamplingStrategy is the strategy for traces that begin with an operation.
struct OperationSamplingStrategy {
  1: required string operation
  2: required ProbabilisticSamplingStrategy probabilisticSampling
}

// PerOperationSamplingStrategies are the strategies of a service's operations, and what holds for those not named.
struct PerOperationSamplingStrategies {
  1: required double defaultSamplingProbability
  2: required double defaultLowerBoundTracesPerSecond
  3: required list<OperationSamplingStrategy> perOperationStrategies
  4: optional double defaultUpperBoundTracesPerSecond
}

// SamplingStrategyResponse is the answer for a service.
struct SamplingStrategyResponse {
  1: required SamplingStrategyType strategyType
  2: optional ProbabilisticSamplingStrategy probabilisticSampling
  3: optional RateLimitingSamplingStrategy rateLimitingSampling
  4: optional PerOperationSamplingStrategies operationSampling
}

// SamplingManager decides what services sample.
service SamplingManager {
  SamplingStrategyResponse getSamplingStrategy(1: string serviceName)
}
