variable "prometheus_url" {
  description = "URL of a Prometheus with the metrics electricity_price and heat_demand and a label site. If empty, the values below are used."
  type        = string
  default     = ""
}

variable "sites" {
  description = "The clusters: location, and metric values used without Prometheus."
  type = map(object({
    location    = string
    tier        = optional(string, "prod")
    electricity = optional(number, 0.5) # euro per kWh, 0 to 1
    heat        = optional(number, 5)   # demand for waste heat, 0 to 10
  }))
  default = {
    berlin = { location = "DE", electricity = 0.4, heat = 8 }
    paris  = { location = "FR", electricity = 0.3, heat = 4 }
    warsaw = { location = "PL", electricity = 0.7, heat = 9 }
    oslo   = { location = "NO", electricity = 0.1, heat = 9 }
  }
}

variable "interval" {
  description = "How often metrics are read."
  type        = string
  default     = "1s"
}

variable "reschedule_after" {
  description = "How long a decision is kept before a better cluster may replace it."
  type        = string
  default     = "5s"
}
